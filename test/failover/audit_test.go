package failover

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/musterd/muster/api"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/test/cluster"
	"github.com/musterd/muster/test/programs"
)

// outcome is the knowledge of a client about a change that it has asked for.
type outcome int

const (
	unknown outcome = iota // no answer, or one that leaves it open
	done
	refused
)

// change is one request that changes something, with its outcome.
type change struct {
	id, verb, name, address string // address is the client's end of the connection
	at                      *cluster.Process
	outcome                 outcome
}

// auditor asks one coordinator for changes, and keeps them. Each request has a
// connection of its own, so that the client knows its address.
type auditor struct {
	t    *testing.T
	at   *cluster.Process
	rest *http.Client
	mu   sync.Mutex
	all  []change
	next int
}

func newAuditor(t *testing.T, c *cluster.Cluster, at *cluster.Process) *auditor {
	return &auditor{t: t, at: at, rest: (&bearer{t: t, c: c}).client()}
}

// keep notes a change, and returns its outcome.
func (a *auditor) keep(made change) outcome {
	a.mu.Lock()
	defer a.mu.Unlock()
	made.at = a.at
	a.all = append(a.all, made)
	return made.outcome
}

// number draws the number of the next change.
func (a *auditor) number() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next++
	return a.next
}

// count counts the changes that are done.
func (a *auditor) count() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.all {
		if one.outcome == done {
			n++
		}
	}
	return n
}

// ask sends a request of the administrator, and returns the client's address.
func (a *auditor) ask(ctx context.Context, token, id, method, path string, body []byte) (code int, text, address string, err error) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { address = i.Conn.LocalAddr().String() }})
	r, err := http.NewRequestWithContext(ctx, method, endpoints(a.at)+"/api/v1"+path, bytes.NewReader(body))
	if err != nil {
		a.t.Error(err)
		return 0, "", "", err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("X-Request-Id", id)
	r.Header.Set("Muster-Forwarded-For", "192.0.2.99:1") // which a coordinator alone may say
	r.Close = true
	switch {
	case method == http.MethodPatch:
		r.Header.Set("Content-Type", "application/merge-patch+json")
	case body != nil:
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := a.rest.Do(r)
	if err != nil {
		return 0, "", address, err
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(raw), address, err
}

// change asks for a change over REST.
func (a *auditor) change(ctx context.Context, token, verb, method, path, name, body string) outcome {
	made := change{id: fmt.Sprintf("%s-%s-%s", a.at.Name, verb, name), verb: verb, name: name}
	var sent []byte
	if body != "" {
		sent = []byte(body)
	}
	code, _, address, err := a.ask(ctx, token, made.id, method, path, sent)
	switch {
	case err == nil && code/100 == 2:
		made.outcome = done
	case err == nil && code/100 == 4:
		made.outcome = refused
	}
	made.address = address
	return a.keep(made)
}

// overGRPC creates an allocation over gRPC.
func (a *auditor) overGRPC(ctx context.Context, c *cluster.Cluster, name string) outcome {
	made := change{id: fmt.Sprintf("%s-create-%s", a.at.Name, name), verb: "create", name: name}
	trust, err := credentials.NewClientTLSFromFile(c.CAFile(), "")
	if err != nil {
		a.t.Error(err)
		return unknown
	}
	conn, err := grpc.NewClient("passthrough:///"+a.at.Address(cluster.RESTPort), grpc.WithTransportCredentials(trust),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if err == nil {
				made.address = conn.LocalAddr().String()
			}
			return conn, err
		}))
	if err != nil {
		a.t.Error(err)
		return unknown
	}
	defer func() { _ = conn.Close() }()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.AdminToken(), "x-request-id", made.id, "muster-forwarded-for", "192.0.2.99:1")
	_, err = apiv1.NewAllocationsClient(conn).Create(ctx, &apiv1.CreateAllocationRequest{Namespace: "default", Allocation: &apiv1.Allocation{
		Metadata: &apiv1.ObjectMeta{Name: name}, Spec: &apiv1.AllocationSpec{Resources: &apiv1.Requirements{Requests: map[string]string{"cpu": "10m"}}},
	}})
	if err == nil {
		made.outcome = done
	}
	return a.keep(made)
}

// story makes an allocation, labels it and deletes it; it stops at the first change
// whose outcome is open.
func (a *auditor) story(ctx context.Context, c *cluster.Cluster) {
	const all = "/namespaces/default/allocations"
	name := fmt.Sprintf("%s-%d", a.at.Name, a.number())
	token := c.AdminToken()
	var made outcome
	if a.number()%3 == 0 {
		made = a.overGRPC(ctx, c, name)
	} else {
		made = a.change(ctx, token, "create", http.MethodPost, all, name, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"resources":{"requests":{"cpu":"10m"}}}}`, name))
	}
	if made != done {
		return
	}
	if a.change(ctx, token, "patch", http.MethodPatch, all+"/"+name, name, `{"metadata":{"labels":{"changed":"yes"}}}`) == done && a.number()%2 == 0 {
		a.change(ctx, token, "delete", http.MethodDelete, all+"/"+name, name, `{"gracePeriodSeconds":0}`)
	}
}

// entries are the entries of changes that a coordinator shows, by the id of the request.
func (a *auditor) entries(ctx context.Context, token string) (map[string][]api.AuditEntry, error) {
	found := map[string][]api.AuditEntry{}
	query := url.Values{"limit": {"1000"}, "result": {api.AuditDone}}
	for {
		code, text, _, err := a.ask(ctx, token, "the-audit", http.MethodGet, "/audit?"+query.Encode(), nil)
		if err != nil || code != http.StatusOK {
			return nil, fmt.Errorf("%s: audit: %d %s: %w", a.at.Name, code, text, errors.Join(err, errCut))
		}
		var list api.AuditEntryList
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, err
		}
		for _, e := range list.Items {
			found[e.RequestID] = append(found[e.RequestID], e)
		}
		if list.Metadata.Continue == "" {
			return found, nil
		}
		query.Set("continue", list.Metadata.Continue)
	}
}

// happened reports whether a change whose answer was lost has come about, as the state
// tells.
func happened(ctx context.Context, t *testing.T, a *auditor, token string, one change) bool {
	code, text, _, err := a.ask(ctx, token, "look", http.MethodGet, "/namespaces/default/allocations/"+one.name, nil)
	if err != nil || code != http.StatusOK && code != http.StatusNotFound {
		t.Errorf("%s: %d %s %v", one.name, code, text, err)
	}
	switch one.verb {
	case "create":
		return code == http.StatusOK
	case "patch":
		return strings.Contains(text, `"changed":"yes"`)
	}
	return code == http.StatusNotFound || strings.Contains(text, `"deletionTimestamp"`)
}

// Clients ask followers for changes, over REST and gRPC, and the leader is killed amid
// them. Each change has one entry, with the address of its client and the coordinator
// that has passed it on; a change that did not come about has none, whether its client
// knows that or not.
func TestEachChangeHasOneEntryOverFollowersAndKills(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Etcd: 1, Agents: 1, Quiet: true})
	leader, epoch := c.AwaitLeader(0)
	followers := c.Followers(leader)
	ctx, cancel := context.WithTimeout(t.Context(), cluster.Patience)
	defer cancel()
	var auditors []*auditor
	var group sync.WaitGroup
	stop := make(chan struct{})
	for _, at := range followers {
		a := newAuditor(t, c, at)
		auditors = append(auditors, a)
		for range 2 {
			group.Go(func() {
				for ctx.Err() == nil {
					select {
					case <-stop:
						return
					default:
						a.story(ctx, c)
					}
				}
			})
		}
	}
	progress := func(more int) {
		t.Helper()
		for _, a := range auditors {
			want := a.count() + more
			programs.Eventually(t, cluster.Patience, fmt.Sprintf("%d changes at %s are done", want, a.at.Name), func() error {
				if n := a.count(); n < want {
					return fmt.Errorf("%d are", n)
				}
				return nil
			})
		}
	}
	progress(20)
	before := map[string]bool{}
	for _, a := range auditors {
		a.mu.Lock()
		for _, one := range a.all {
			before[one.id] = true
		}
		a.mu.Unlock()
	}
	leader.Kill()
	c.AwaitLeader(epoch)
	progress(20)
	close(stop)
	group.Wait()
	leader.Start()
	c.AwaitReady()

	deleted := map[string]bool{}
	for _, a := range auditors {
		for _, one := range a.all {
			deleted[one.name] = deleted[one.name] || one.verb == "delete"
		}
	}
	counts := map[outcome]int{}
	via := 0
	for _, reader := range c.Coordinators {
		by := newAuditor(t, c, reader)
		// A coordinator that has started again knows a submission from the record of the
		// work alone.
		forgotten := func(one change) bool { return reader == leader && one.verb == "create" && deleted[one.name] }
		var found map[string][]api.AuditEntry
		programs.Eventually(t, cluster.Patience, reader.Name+" shows the entries of all changes that are done", func() (err error) {
			if found, err = by.entries(ctx, c.AdminToken()); err != nil {
				return err
			}
			for _, a := range auditors {
				for _, one := range a.all {
					if one.outcome == done && len(found[one.id]) == 0 && !forgotten(one) {
						return fmt.Errorf("%s has none", one.id)
					}
				}
			}
			return nil
		})
		for _, a := range auditors {
			for _, one := range a.all {
				if forgotten(one) {
					continue
				}
				counts[one.outcome]++
				all := found[one.id]
				want := 1
				if one.outcome == refused || one.outcome == unknown && !happened(ctx, t, by, c.AdminToken(), one) {
					want = 0
				}
				if len(all) != want {
					t.Errorf("%s shows %d entries of %s (outcome %d), want %d: %+v", reader.Name, len(all), one.id, one.outcome, want, all)
					continue
				}
				if want == 0 {
					continue
				}
				e := all[0]
				passed := e.Via == one.at.Name || e.Via == "" && !before[one.id] // that coordinator leads by then
				if e.Person != "admin" || e.Verb != one.verb || e.Name != one.name || e.Address != one.address || !passed {
					t.Errorf("%s shows %+v, want %s of %s from %s via %s", reader.Name, e, one.verb, one.name, one.address, one.at.Name)
				}
				if e.Via != "" {
					via++
				}
			}
		}
	}
	t.Logf("at three coordinators: %d changes are done (%d of the entries name the coordinator that has passed the change on), %d refused, %d without an answer",
		counts[done], via, counts[refused], counts[unknown])
}
