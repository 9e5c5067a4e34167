package daemon_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/muster/cli"
	"github.com/musterd/muster/coordinator/daemon"
	"github.com/musterd/muster/coordinator/store/etcd"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/etcdcluster"
)

// trio is three coordinators over one store, in this process, by TLS.
type trio struct {
	t    *testing.T
	all  map[string]*daemon.Daemon
	stop map[string]func()
	ca   string
}

func newTrio(t *testing.T) *trio {
	store := etcdcluster.Start(t, etcdcluster.Options{Members: 1})
	w := &trio{t: t, all: map[string]*daemon.Daemon{}, stop: map[string]func(){}}
	for _, id := range []string{"c1", "c2", "c3"} {
		dir := filepath.Join(t.TempDir(), "tls")
		d, err := daemon.New(t.Context(), daemon.Config{
			ID: id, Cluster: "test", DataDir: t.TempDir(), Etcd: etcd.Config{Endpoints: store.Endpoints()},
			RESTListen: "127.0.0.1:0", GRPCListen: "127.0.0.1:0", SerfBind: "127.0.0.1:0", CapacityBind: "127.0.0.1:0",
			TLS: &daemon.TLSConfig{Dir: dir, REST: true}, AdminToken: newToken(t, adminSecret), LeaseTTL: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		once := false
		w.all[id], w.ca = d, filepath.Join(dir, "ca.pem")
		w.stop[id] = func() {
			if once {
				return
			}
			once = true
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		t.Cleanup(w.stop[id])
	}
	return w
}

// client is the SDK at one coordinator: by the administrator's token where party is "",
// else by a client certificate.
func (w *trio) client(id, party string) *sdk.Client {
	w.t.Helper()
	c := sdk.Config{Endpoint: "https://" + w.all[id].RESTAddr(), CAFile: w.ca, Token: adminSecret}
	if party != "" {
		c.Token, c.Certificate = "", sdk.Certificate{CertFile: party}
	}
	client, err := sdk.NewClient(c)
	if err != nil {
		w.t.Fatal(err)
	}
	return client
}

// muster runs the command line at one coordinator, as the administrator.
func (w *trio) muster(id string, args ...string) string {
	w.t.Helper()
	env := map[string]string{"MUSTER_CONTEXT": filepath.Join(w.t.TempDir(), "none"), "MUSTER_ADDR": "https://" + w.all[id].RESTAddr(), "MUSTER_CA_FILE": w.ca}
	if !slices.Contains(args, "--client-certificate") {
		env["MUSTER_TOKEN"] = adminSecret
	}
	return w.musterIn(env, args...)
}

// musterIn runs the command line in an environment.
func (w *trio) musterIn(env map[string]string, args ...string) string {
	w.t.Helper()
	var out, complaint bytes.Buffer
	code := cli.Program{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &complaint, Env: func(k string) string { return env[k] }, Args: args}.Run(w.t.Context())
	if code != 0 {
		w.t.Fatalf("muster %s: %d, %s", strings.Join(args, " "), code, complaint.String())
	}
	return out.String() + complaint.String()
}

// certified makes a certificate by the command line; party is the file with its key.
func (w *trio) certified(by, user string, flags ...string) (id, party string) {
	w.t.Helper()
	dir := filepath.Join(w.t.TempDir(), "person")
	said := w.muster(by, append([]string{"token", "create", "--user", user, "--dir", dir}, flags...)...)
	for _, word := range strings.Fields(said) {
		if strings.HasPrefix(word, "at-") {
			return word, filepath.Join(dir, "party.pem")
		}
	}
	w.t.Fatalf("no id in %q", said)
	return "", ""
}

// leader waits until a coordinator leads and names it and the others that run.
func (w *trio) leader(among ...string) (leads string, others []string) {
	w.t.Helper()
	for {
		list, err := w.client(among[0], "").Coordinators(w.t.Context())
		if err == nil {
			for _, c := range list.Items {
				if c.Role == api.LeaderRole && slices.Contains(among, c.ID) {
					others = slices.DeleteFunc(slices.Clone(among), func(id string) bool { return id == c.ID })
					return c.ID, others
				}
			}
		}
		select {
		case <-w.t.Context().Done():
			w.t.Fatalf("nobody leads: %v", err)
		case <-time.After(20 * time.Millisecond): // another look
		}
	}
}

func document(name string) *api.Allocation {
	return &api.Allocation{Metadata: api.ObjectMeta{Name: name}, Spec: api.AllocationSpec{Resources: api.Requirements{Requests: map[resource.Name]string{"nvidia.com/gpu": "1"}}}}
}

// grpcClient calls the public API of a coordinator by a certificate.
func (w *trio) grpcClient(id, party string) apiv1.AllocationsClient {
	w.t.Helper()
	pair, err := tls.LoadX509KeyPair(party, party)
	if err != nil {
		w.t.Fatal(err)
	}
	trust, err := sdk.Trust(w.ca)
	if err != nil {
		w.t.Fatal(err)
	}
	trust.Certificates = []tls.Certificate{pair}
	conn, err := grpc.NewClient(w.all[id].RESTAddr(), grpc.WithTransportCredentials(credentials.NewTLS(trust)))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	return apiv1.NewAllocationsClient(conn)
}

// watch follows the allocations of namespace ml; the channel has the error that ends the
// watch.
func (w *trio) watch(id, party string) <-chan error {
	opened, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		first := true
		for _, err := range w.client(id, party).Allocations("ml").Watch(w.t.Context(), sdk.WatchOptions{}) {
			if first {
				first = false
				close(opened)
			}
			if err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	select {
	case <-opened:
	case err := <-ended:
		w.t.Fatalf("the watch at %s ended: %v", id, err)
	}
	return ended
}

func isRefused(err error, code int, text string) bool {
	var refused *api.Status
	return errors.As(err, &refused) && refused.Code == code && strings.Contains(refused.Message, text)
}

// A person with a client certificate uses each of three coordinators, over REST and over
// gRPC, and the leader carries out what a follower passes on as that person's. The
// revocation is in force everywhere, and ends the open watches, also where the leader
// has gone meanwhile.
func TestAClientCertificateAtThreeCoordinators(t *testing.T) {
	w := newTrio(t)
	leads, others := w.leader("c1", "c2", "c3")
	id, party := w.certified(others[0], "ada", "--role", "editor", "--tenant", "ml", "--ttl", "24h")
	for _, at := range []string{"c1", "c2", "c3"} {
		me, err := w.client(at, party).WhoAmI(t.Context())
		if err != nil || me.User != "cert:ada" || me.Proof != api.ProofCertificate || me.Token != id {
			t.Fatalf("at %s the caller is %+v, %v", at, me, err)
		}
		if _, err := w.client(at, party).Allocations("ml").Create(t.Context(), document("rest-"+at), sdk.CreateOptions{}); err != nil {
			t.Errorf("created at %s, over REST: %v", at, err)
		}
		if _, err := w.client(at, party).Allocations("other").Create(t.Context(), document("rest-"+at), sdk.CreateOptions{}); !isRefused(err, http.StatusNotFound, "") {
			t.Errorf("created in another tenant at %s: %v", at, err)
		}
		got, err := w.grpcClient(at, party).Create(t.Context(), &apiv1.CreateAllocationRequest{Allocation: &apiv1.Allocation{
			Metadata: &apiv1.ObjectMeta{Name: "grpc-" + at, Namespace: "ml"}, Spec: &apiv1.AllocationSpec{Resources: &apiv1.Requirements{Requests: map[string]string{"nvidia.com/gpu": "1"}}},
		}})
		if err != nil || got.GetMetadata().GetName() != "grpc-"+at {
			t.Errorf("created at %s, over gRPC: %v, %v", at, got, err)
		}
	}
	if said := w.muster(leads, "whoami", "--client-certificate", party); !strings.Contains(said, "cert:ada") || !strings.Contains(said, "client certificate "+id) {
		t.Errorf("whoami says\n%s", said)
	}
	kept := map[string]string{"MUSTER_CONTEXT": filepath.Join(t.TempDir(), "contexts")}
	w.musterIn(kept, "config", "set-context", "admin", "--token", adminSecret, "--addr", "https://"+w.all[leads].RESTAddr(), "--ca-file", w.ca)
	for given, who := range map[string]string{"": "admin", party: "cert:ada"} {
		if said := w.musterIn(kept, "whoami", "--client-certificate", given); !strings.Contains(said, who) {
			t.Errorf("with the certificate %q beside the token of the context, whoami says\n%s", given, said)
		}
	}
	if said := w.muster(leads, "token", "list"); !strings.Contains(said, "certificate") {
		t.Errorf("token list says\n%s", said)
	}
	entries, err := w.client(leads, "").Audit(t.Context(), sdk.AuditOptions{Person: "cert:ada"})
	if err != nil || len(entries.Items) < 6 {
		t.Errorf("the audit has %d entries of the person, want those of 6 creations: %v", len(entries.Items), err)
	}

	var watches []<-chan error
	for _, at := range []string{"c1", "c2", "c3"} {
		watches = append(watches, w.watch(at, party))
	}
	gone, err := w.client(others[1], "").Tokens().Revoke(t.Context(), id)
	if err != nil || len(gone.Status.NotFollowedBy) > 0 {
		t.Fatalf("revoked: %+v, %v", gone, err)
	}
	for i, ended := range watches {
		if err := <-ended; !isRefused(err, http.StatusUnauthorized, "the client certificate "+id+" was revoked") {
			t.Errorf("watch %d ended: %v", i, err)
		}
	}
	for _, at := range []string{"c1", "c2", "c3"} {
		if _, err := w.client(at, party).WhoAmI(t.Context()); !isRefused(err, http.StatusUnauthorized, "was revoked") {
			t.Errorf("after the revocation %s answers %v", at, err)
		}
		if _, err := w.grpcClient(at, party).Get(t.Context(), &apiv1.GetRequest{Namespace: "ml", Name: "rest-c1"}); status.Code(err) != codes.Unauthenticated {
			t.Errorf("after the revocation %s answers %v over gRPC", at, err)
		}
	}

	next, party := w.certified(leads, "ada", "--role", "viewer", "--tenant", "ml")
	left := w.watch(others[1], party)
	w.stop[leads]()
	w.leader(others...)
	if _, err := w.client(others[0], "").Tokens().Revoke(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if err := <-left; !isRefused(err, http.StatusUnauthorized, "was revoked") {
		t.Errorf("after the failover the watch ended: %v", err)
	}
}

// The listener of the API has its answer to each certificate that opens nothing there,
// and a token beside such a certificate opens what the token opens.
func TestCertificatesOfOthersAtTheListenerOfTheAPI(t *testing.T) {
	s := serve(t, func(*daemon.Config) {})
	own, err := s.Secure(t.Context(), nil, "ann")
	if err != nil {
		t.Fatal(err)
	}
	shown := tls.Certificate{PrivateKey: own.Operator.Key}
	for _, c := range own.Operator.Chain {
		shown.Certificate = append(shown.Certificate, c.Raw)
	}
	large := tls.Certificate{PrivateKey: own.Operator.Key, Certificate: slices.Repeat(shown.Certificate, 40)}
	ask := func(certificate tls.Certificate, token string) (int, string, error) {
		trust := &tls.Config{RootCAs: s.roots, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }}
		transport := &http.Transport{TLSClientConfig: trust}
		defer transport.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.RESTAddr()+"/api/v1/whoami", nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			return 0, "", err
		}
		defer answer.Body.Close()
		var text bytes.Buffer
		_, err = text.ReadFrom(answer.Body)
		return answer.StatusCode, text.String(), err
	}
	if code, text, err := ask(shown, ""); code != http.StatusUnauthorized || !strings.Contains(text, "muster://test/operator/ann opens nothing here") {
		t.Errorf("an operator's certificate: %d %s, %v", code, text, err)
	}
	if code, text, err := ask(shown, adminSecret); code != http.StatusOK || !strings.Contains(text, `"adminToken"`) {
		t.Errorf("a token beside it: %d %s, %v", code, text, err)
	}
	if code, text, err := ask(large, adminSecret); err == nil {
		t.Errorf("certificates of more than 16 KiB: %d %s", code, text)
	}
}

func TestARoleInATenantWithoutAnObjectIsWarnedOf(t *testing.T) {
	w := newTrio(t)
	leads, _ := w.leader("c1", "c2", "c3")
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "document.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	w.muster(leads, "apply", "-f", file("apiVersion: muster/v1\nkind: Tenant\nmetadata: {name: vision}\n---\napiVersion: muster/v1\nkind: Namespace\nmetadata: {name: ml}\n"))
	for tenant, warned := range map[string]bool{"vison": true, "vision": false, "ml": false, "": false} {
		role := "editor"
		if tenant == "" {
			role = "operator"
		}
		binding := "apiVersion: muster/v1\nkind: RoleBinding\nmetadata: {name: b" + tenant + "}\nspec: {role: " + role + ", tenant: '" + tenant + "', subjects: [{kind: User, name: ada}]}\n"
		for how, said := range map[string]string{
			"token":       w.muster(leads, "token", "create", "--user", "ada", "--role", role, "--tenant", tenant),
			"certificate": w.muster(leads, "token", "create", "--user", "ada", "--role", role, "--tenant", tenant, "--dir", filepath.Join(t.TempDir(), "ada")),
			"binding":     w.muster(leads, "apply", "-f", file(binding)),
		} {
			if got := strings.Contains(said, "no Tenant and no Namespace "+tenant+" yet"); got != warned {
				t.Errorf("the %s of tenant %q is warned of: %v, want %v:\n%s", how, tenant, got, warned, said)
			}
		}
	}
}
