package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/muster/internal/clicontext"
	"github.com/musterd/muster/sdk"
)

// app is a program at work: its flags and the values that follow from them.
type app struct {
	Program
	addr, token, namespace, output string
	caFile, contextName            string
	allNamespaces, showLabels      bool
	own                            sdk.Certificate // of the caller
	outside                        bool            // of namespaces: the events of a node are asked for
	noHeaders, recursive           bool
	allowUnknown                   bool // names of resources in quotas
	severalKinds                   bool // get was asked for several
	sortBy                         field
	template                       *path    // of -o jsonpath
	columns                        []column // of -o custom-columns

	client         *sdk.Client // once connect has run
	namespaceGiven bool        // on the command line
	ownNamespace   string      // that of commands without -n: of the context, or the default
	trusted        string      // the file of authorities that connect found; "" = the system's
	fromContext    bool        // connect found the address in a context
	warned         sync.Map    // the texts of warnings that were printed
	// typing is standard input, once a session has asked for it.
	typing *typing
}

const defaultNamespace = "default"

// callTimeout bounds a verb that waits for nothing but the server.
const callTimeout = 30 * time.Second

// named checks the names of objects of one kind, and connects.
func (a *app) named(of kind, args []string) ([]string, error) {
	_, names, err := parseTargets(append([]string{string(of)}, args...))
	if err != nil {
		return nil, err
	}
	return names, a.connect()
}

// connect resolves address, token and namespace (flag, then environment, then
// the context) and builds the client. A context that --context names comes
// before the environment. A context's token goes to the context's addresses and
// to no other.
func (a *app) connect() error {
	a.namespaceGiven = a.namespace != ""
	addr, token, caFile, own := a.addr, a.token, a.caFile, a.certificate()
	if a.contextName == "" {
		addr, token, caFile = cmp.Or(addr, a.Env("MUSTER_ADDR")), cmp.Or(token, a.Env("MUSTER_TOKEN")), cmp.Or(caFile, a.Env("MUSTER_CA_FILE"))
	}
	if a.contextName != "" || addr == "" || token == "" {
		c, found, err := a.selected()
		switch {
		case err != nil:
			return err
		case !found && addr == "":
			return a.noServer()
		}
		if addr == "" {
			addr, a.fromContext = c.Addr, true
		}
		if token == "" && own.CertFile == "" && among(addr, c.Addr) {
			if token, err = a.renewed(c); err != nil {
				return err
			}
		}
		if among(addr, c.Addr) {
			own = cmp.Or(own, sdk.Certificate{CertFile: c.ClientCertificate, KeyFile: c.ClientKey})
		}
		caFile = cmp.Or(caFile, c.CertificateAuthority)
		a.ownNamespace = c.Namespace
	}
	a.ownNamespace = cmp.Or(a.ownNamespace, defaultNamespace)
	a.namespace = cmp.Or(a.namespace, a.ownNamespace)
	if !api.IsLabel(a.namespace) {
		if a.namespaceGiven {
			return usagef("--namespace %q is not an RFC 1123 label (1..63 of a-z, 0-9 and '-')", a.namespace)
		}
		return usagef("namespace %q of the context is not an RFC 1123 label (1..63 of a-z, 0-9 and '-')", a.namespace)
	}
	return a.dial(addr, token, caFile, own)
}

// certificate is the client certificate of the flags or, without --context, of the
// environment.
func (a *app) certificate() sdk.Certificate {
	if a.own != (sdk.Certificate{}) || a.contextName != "" {
		return a.own
	}
	return sdk.Certificate{CertFile: a.Env("MUSTER_CLIENT_CERTIFICATE"), KeyFile: a.Env("MUSTER_CLIENT_KEY")}
}

// dial builds the client of the servers at addr.
func (a *app) dial(addr, token, caFile string, own sdk.Certificate) error {
	a.trusted = caFile
	trust, err := sdk.Trust(caFile)
	if err != nil {
		return a.misplaced(err, "--ca-file", a.caFile, "MUSTER_CA_FILE")
	}
	if trust, err = own.AddTo(trust); err != nil {
		flag, given, variable := "--client-certificate", a.own.CertFile, "MUSTER_CLIENT_CERTIFICATE"
		if own.CertFile == "" {
			flag, given, variable = "--client-key", a.own.KeyFile, "MUSTER_CLIENT_KEY"
		}
		return a.misplaced(err, flag, given, variable)
	}
	client, err := sdk.NewClient(sdk.Config{Endpoint: strings.Join(endpoints(addr), ","), Token: token, Warnings: a.showWarning, AllowUnknownResources: a.allowUnknown, HTTPClient: &http.Client{
		Transport: &http.Transport{
			Proxy:           http.ProxyFromEnvironment,
			DialContext:     (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSClientConfig: trust,
		},
	}})
	switch {
	case errors.Is(err, sdk.ErrBadToken):
		return a.misplaced(err, "--token", a.token, "MUSTER_TOKEN")
	case err != nil:
		return a.misplaced(err, "--addr", a.addr, "MUSTER_ADDR")
	}
	a.client = client
	return nil
}

// misplaced names the origin of a bad value: the flag, which is wrong usage, else the
// variable of the environment, else the context.
func (a *app) misplaced(err error, flag, given, variable string) error {
	switch {
	case given != "":
		return usagef("%s: %w", flag, err)
	case a.contextName == "" && a.Env(variable) != "":
		return fmt.Errorf("%s: %w", variable, err)
	}
	return err
}

// showWarning prints a server's warning as kubectl does, each text once.
func (a *app) showWarning(_ int, _, text string) {
	if _, shown := a.warned.LoadOrStore(text, true); !shown {
		a.notef("Warning: %s\n", text)
	}
}

// noServer says how to name a server.
func (a *app) noServer() error {
	path, err := clicontext.Path(a.Env)
	if err != nil {
		return err
	}
	f, err := a.contexts()
	if err != nil {
		return err
	}
	if len(f.Contexts) > 0 {
		return fmt.Errorf("no server is known: choose a context with muster config use-context NAME (%s has %s), or name the server with --addr or MUSTER_ADDR",
			path, strings.Join(f.Names(), ", "))
	}
	return fmt.Errorf("no server is known: start one with muster dev, or name it with --addr or MUSTER_ADDR (there is no context in %s)", path)
}

// endpoints reads one address or several with commas in between.
func endpoints(addr string) []string {
	var all []string
	for one := range strings.SplitSeq(addr, ",") {
		if one = strings.TrimSpace(one); one != "" {
			all = append(all, endpoint(one))
		}
	}
	return all
}

// absolute returns a path that names the same file from every folder.
func absolute(path string) (string, error) { return filepath.Abs(path) }

// among reports whether every address is one of the known ones.
func among(addr, known string) bool {
	for _, e := range endpoints(addr) {
		if !slices.Contains(endpoints(known), e) {
			return false
		}
	}
	return true
}

// endpoint adds the scheme that people leave out.
func endpoint(addr string) string {
	if addr == "" || strings.Contains(addr, "://") {
		return strings.TrimSuffix(addr, "/")
	}
	return "http://" + addr
}

// listNamespace is the namespace to list; "" = all.
func (a *app) listNamespace() string {
	if a.allNamespaces || a.outside {
		return ""
	}
	return a.namespace
}

// advise words an error for a person and adds the next step.
func (a *app) advise(ctx context.Context, err error) string {
	return parameters.Replace(a.adviseServer(ctx, err))
}

// parameters are parameters of requests, and the flags that set them.
var parameters = strings.NewReplacer("query parameter labelSelector", "--selector", "query parameter fieldSelector", "--field-selector")

func (a *app) adviseServer(ctx context.Context, err error) string {
	var status *api.Status
	var broken *url.Error
	server := ""
	if a.client != nil {
		server = a.client.Endpoint()
	}
	tls := a.adviseTLS(server, err)
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return "interrupted"
	case a.client == nil:
		return err.Error()
	case tls != "":
		return tls
	case errors.As(err, &status) && status.Code == http.StatusUnauthorized:
		return fmt.Sprintf("%s does not let you in: %s (--token, MUSTER_TOKEN or the context)", server, status.Message)
	case errors.As(err, &status) && status.Code == http.StatusForbidden && strings.Contains(status.Message, "quota"):
		return err.Error() + "; muster quota get" + a.inNamespace(a.namespace) + " shows who holds what"
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("cannot connect to %s: connection refused; is it running? start one with: muster dev", server)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer from %s in time; is it overloaded, or is the address wrong?", server)
	case errors.As(err, &broken):
		return fmt.Sprintf("cannot talk to %s: %v; is the address right?", server, broken.Err)
	}
	return err.Error()
}

func isNotFound(err error) bool { return hasCode(err, http.StatusNotFound) }

// isUnavailable reports whether a coordinator could not answer for the moment.
func isUnavailable(err error) bool { return hasCode(err, http.StatusServiceUnavailable) }

func hasCode(err error, code int) bool {
	var status *api.Status
	return errors.As(err, &status) && status.Code == code
}
