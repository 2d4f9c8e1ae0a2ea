"""The rights of our ServiceAccount, in one table, and what is generated from it.

`rights.py` is the table. A row grants verbs on resources, says why they are needed, and limits what the account may
write with them. From it, `make manifests` generates the roles (`roles.py`), a ValidatingAdmissionPolicy for each kind
that the account writes (`policies.py`), and the table of docs/security.md (`page.py`).
"""
