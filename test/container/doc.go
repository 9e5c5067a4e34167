// Package container tests members in root file systems of their own, with the host's crun:
// the runner alone, and a whole cluster. It needs root, for users of its own and for a
// mount namespace, crun, and a static busybox; `make test` brings both.
package container
