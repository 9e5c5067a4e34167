package cli

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/musterd/muster/api"
)

// adviseTLS words a failure of TLS between this program and a server: the
// authority is unknown, the certificate is that of another host or of another
// time, or one side speaks TLS and the other does not. It returns "" for every
// other error.
func (a *app) adviseTLS(server string, err error) string {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var status *api.Status
	switch {
	case errors.As(err, &unknown):
		return fmt.Sprintf("cannot trust %s: its certificate is signed by an authority that %s does not hold; name the cluster's authority with --ca-file FILE or MUSTER_CA_FILE, or keep it in a context: %s",
			server, a.trustedBy(), a.setContext(server, "--ca-file FILE"))
	case errors.As(err, &host):
		return fmt.Sprintf("cannot trust %s: %v; use a name or an address of the certificate in --addr, MUSTER_ADDR or a context: %s",
			server, host, a.setContext("", "--addr https://HOST:PORT"))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("cannot trust %s: %v; is the clock of this machine right? If it is, the server needs a new certificate", server, invalid)
	case errors.Is(err, http.ErrSchemeMismatch):
		plain := "http" + strings.TrimPrefix(server, "https")
		return fmt.Sprintf("%s answers without TLS; is it the REST address of a coordinator? One without TLS is named %s, with --addr, MUSTER_ADDR or a context: %s",
			server, plain, a.setContext("", "--addr "+plain))
	case errors.As(err, &status) && status.Code == http.StatusBadRequest && strings.Contains(status.Message, "HTTP request to an HTTPS server"):
		secure := "https" + strings.TrimPrefix(server, "http")
		return fmt.Sprintf("%s answers with TLS only; name it %s with --addr, MUSTER_ADDR or a context, and its authority with --ca-file FILE or MUSTER_CA_FILE: %s",
			server, secure, a.setContext("", "--addr "+secure+" --ca-file FILE"))
	}
	return ""
}

// trustedBy names the authorities by which connect judges a server.
func (a *app) trustedBy() string {
	if a.trusted == "" {
		return "this machine"
	}
	return a.trusted
}

// setContext is the command that changes the fields of the context in use. Where
// the server's address comes from no context, the command makes one with it.
func (a *app) setContext(server, fields string) string {
	switch {
	case a.contextName != "":
		return "muster config set-context " + a.contextName + " " + fields
	case a.fromContext:
		return "muster config set-context --current " + fields
	case server != "":
		fields = "--addr " + server + " " + fields
	}
	return "muster config set-context NAME " + fields
}
