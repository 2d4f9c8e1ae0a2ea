// Serves the HTTPS API of a kubelet, as a kube-apiserver calls it, with Kubernetes' own streaming server. Every
// container exists, and reads and prints as `cat` does: its log is what was sent to those who attached to it. exec runs
// a process of this machine, and port-forward connects to its loopback interface, so each request takes a client
// certificate of the CA. Calls are printed when they begin, and those of logs when they end, too. It runs until it is
// killed.
//
// usage: kubelet PORT CERTIFICATE KEY CLIENT_CA
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"sync"

	"k8s.io/client-go/tools/remotecommand"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubelet/pkg/cri/streaming"
	streams "k8s.io/kubelet/pkg/cri/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

func main() {
	if len(os.Args) != 5 {
		log.Fatal("usage: kubelet PORT CERTIFICATE KEY CLIENT_CA")
	}
	ca, err := os.ReadFile(os.Args[4])
	if err != nil {
		log.Fatal(err)
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(ca) {
		log.Fatal("no certificate in ", os.Args[4])
	}
	containers := &runtime{logs: map[string]*output{}}
	server, err := streaming.NewServer(streaming.DefaultConfig, containers)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", containers.serveLogs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		in, out, err, tty := wanted(r)
		response, failure := server.GetExec(&runtimeapi.ExecRequest{ContainerId: id(r), Cmd: r.URL.Query()["command"],
			Stdin: in, Stdout: out, Stderr: err, Tty: tty})
		serve(server, w, r, response.GetUrl(), failure)
	})
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		in, out, err, tty := wanted(r)
		response, failure := server.GetAttach(&runtimeapi.AttachRequest{ContainerId: id(r),
			Stdin: in, Stdout: out, Stderr: err, Tty: tty})
		serve(server, w, r, response.GetUrl(), failure)
	})
	mux.HandleFunc("/portForward/{namespace}/{pod}", func(w http.ResponseWriter, r *http.Request) {
		response, failure := server.GetPortForward(&runtimeapi.PortForwardRequest{PodSandboxId: id(r)})
		serve(server, w, r, response.GetUrl(), failure)
	})
	authentication := &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	kubelet := http.Server{Addr: net.JoinHostPort("127.0.0.1", os.Args[1]), Handler: mux, TLSConfig: authentication}
	log.Fatal(kubelet.ListenAndServeTLS(os.Args[2], os.Args[3]))
}

func id(r *http.Request) string { return r.PathValue("namespace") + "/" + r.PathValue("pod") }

// The streams that a call asks for: none if it cannot be read, which the streaming server refuses.
func wanted(r *http.Request) (in, out, err, tty bool) {
	options, failure := streams.NewOptions(r)
	if failure != nil {
		return false, false, false, false
	}
	return options.Stdin, options.Stdout, options.Stderr, options.TTY
}

// The streaming server gives each call an address of its own, to which a kubelet forwards the connection.
func serve(server streaming.Server, w http.ResponseWriter, r *http.Request, address string, err error) {
	if err == nil {
		r.URL, err = url.Parse(address)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	server.ServeHTTP(w, r)
}

type runtime struct {
	mutex sync.Mutex
	logs  map[string]*output
}

func (c *runtime) log(id string) *output {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.logs[id] == nil {
		c.logs[id] = &output{grown: make(chan struct{})}
	}
	return c.logs[id]
}

func (c *runtime) serveLogs(w http.ResponseWriter, r *http.Request) {
	fmt.Println("logs", id(r))
	defer fmt.Println("end of logs", id(r))
	offset := 0
	if lines, err := strconv.Atoi(r.FormValue("tailLines")); err == nil {
		offset = c.log(id(r)).startOfLast(lines)
	}
	_ = c.log(id(r)).copyTo(r.Context(), flushed{w}, offset, r.FormValue("follow") == "true")
}

func (c *runtime) Exec(ctx context.Context, id string, command []string, in io.Reader, out, err io.WriteCloser, _ bool,
	_ <-chan remotecommand.TerminalSize) error {
	fmt.Println("exec", id)
	process := exec.CommandContext(ctx, command[0], command[1:]...)
	process.Stdout, process.Stderr = out, err
	if in != nil {
		// not process.Stdin: a process that has ended would wait for the end of its input
		pipe, failure := process.StdinPipe()
		if failure != nil {
			return failure
		}
		go func() {
			_, _ = io.Copy(pipe, in)
			_ = pipe.Close()
		}()
	}
	failure := process.Run()
	if exit := (*exec.ExitError)(nil); errors.As(failure, &exit) {
		return &utilexec.ExitErrorWrapper{ExitError: exit}
	}
	return failure
}

func (c *runtime) Attach(ctx context.Context, id string, in io.Reader, out, _ io.WriteCloser, _ bool,
	_ <-chan remotecommand.TerminalSize) error {
	fmt.Println("attach", id)
	if in == nil {
		return c.log(id).copyTo(ctx, out, 0, true)
	}
	_, err := io.Copy(io.MultiWriter(c.log(id), out), in)
	return err
}

func (c *runtime) PortForward(_ context.Context, id string, port int32, stream io.ReadWriteCloser) error {
	fmt.Println("port-forward", id)
	connection, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(port)})
	if err != nil {
		return err
	}
	defer connection.Close()
	go func() {
		_, _ = io.Copy(connection, stream)
		_ = connection.CloseWrite()
	}()
	_, err = io.Copy(stream, connection)
	return err
}

// All that a container has printed. `grown` is closed at the next write.
type output struct {
	mutex   sync.Mutex
	printed []byte
	grown   chan struct{}
}

func (o *output) Write(more []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.printed = append(o.printed, more...)
	close(o.grown)
	o.grown = make(chan struct{})
	return len(more), nil
}

func (o *output) read() ([]byte, <-chan struct{}) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.printed, o.grown
}

func (o *output) startOfLast(lines int) int {
	printed, _ := o.read()
	all := bytes.SplitAfter(printed, []byte("\n"))
	return len(bytes.Join(all[:max(0, len(all)-1-lines)], nil))
}

func (o *output) copyTo(ctx context.Context, to io.Writer, offset int, follow bool) error {
	for {
		printed, grown := o.read()
		if _, err := to.Write(printed[offset:]); err != nil || !follow {
			return err
		}
		offset = len(printed)
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Sends each write at once, as a kubelet does.
type flushed struct{ http.ResponseWriter }

func (f flushed) Write(content []byte) (int, error) {
	n, err := f.ResponseWriter.Write(content)
	if err != nil {
		return n, err
	}
	return n, http.NewResponseController(f.ResponseWriter).Flush()
}
