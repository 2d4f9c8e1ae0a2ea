#!/bin/sh
# Builds the image, and records the digest of the base that it was built from in build/base-image.txt. Environment:
#   ENGINE       docker (default), podman or buildah, with flags if needed
#   BASE         an image with Python 3.11 or later and venv; localhost/… is not pulled
#   IMAGE        name of the image, without a tag
#   MALLOC       jemalloc (default), which a base with apt installs, or glibc
#   BUILD_FLAGS  further flags of the build, such as --isolation=chroot
set -eu
cd "$(dirname "$0")/.."
engine=${ENGINE:-docker} base=${BASE:-python:3.11-slim} image=${IMAGE:-tenant-apiserver}
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' tenant_apiserver/__init__.py)

# engines and flags are words
# shellcheck disable=SC2086
case $base in localhost/*) ;; *) $engine pull "$base" >&2 ;; esac
# shellcheck disable=SC2086
case $engine in
buildah*) digest=$($engine inspect --type=image --format='{{.FromImageDigest}}' "$base") ;;
*) digest=$($engine image inspect --format='{{index .RepoDigests 0}}' "$base") ;;
esac
case $digest in *sha256:*) ;; *) echo "no digest of $base: $digest" >&2; exit 1 ;; esac
pinned="${base%:*}@sha256:${digest##*sha256:}"

mkdir -p build
echo "$pinned" > build/base-image.txt
# shellcheck disable=SC2086
$engine build ${BUILD_FLAGS:-} --build-arg="BASE=$pinned" \
    --build-arg="MALLOC=${MALLOC:-jemalloc}" --tag="$image:$version" \
    --label="org.opencontainers.image.version=$version" \
    --label="org.opencontainers.image.base.name=$base" \
    --label="org.opencontainers.image.base.digest=sha256:${digest##*sha256:}" .
echo "$image:$version from $pinned"
