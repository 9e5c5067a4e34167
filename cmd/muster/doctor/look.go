package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/serf/client"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// The checks of a cluster, in their order.
const (
	checkReach        = "reachability"
	checkReady        = "readiness"
	checkAccess       = "access"
	checkClock        = "clock"
	checkCertificates = "certificates"
	checkVersions     = "versions"
	checkNodes        = "nodes"
	checkNames        = "names"
	checkQuotas       = "quotas"
	checkRing         = "ring"
)

var clusterChecks = []string{
	checkReach, checkReady, checkAccess, checkClock, checkCertificates, checkVersions, checkNodes, checkNames, checkQuotas, checkRing,
}

const (
	// maxEndpoints bounds the addresses that are asked, those that a coordinator
	// names included.
	maxEndpoints = 32
	// progressAfter is the time after which a look names the answer that it waits for.
	progressAfter = time.Second
)

// Options say where to look.
type Options struct {
	// Endpoints are base URLs of coordinators; Token is sent to these alone.
	Endpoints []string
	Token     string
	Trust     *tls.Config // nil trusts the system's authorities
	Version   string      // of this program
	// SerfRPC is the address of a serf RPC port, "" looks at no ring; SerfToken
	// opens it.
	SerfRPC, SerfToken string
	// Patience bounds each question; 0 is 5 s.
	Patience time.Duration
	// Progress takes a line about each question that takes more than a second; nil
	// takes none.
	Progress io.Writer
}

func (o Options) patience() time.Duration { return cmp.Or(o.Patience, 5*time.Second) }

// Facts are the results of a look at a cluster. Judge makes findings of them.
type Facts struct {
	client string // this program's version
	probes []probe
	// blind holds, by check, why it could not be made.
	blind map[string]string
	// refused is the answer to a question with the token, nil where it was let in.
	refused      *api.Status
	coordinators []api.Coordinator
	level        *api.FeatureLevel // nil: an older coordinator, or a token without the right
	nodes        []api.Node
	quotas       []api.ResourceQuota
	trees        []api.QuotaTree
	resources    []api.Resource
	authorities  []api.Authority
	operators    []api.OperatorCertificate
	members      []client.Member
}

// Look asks all endpoints, each other coordinator that one of them names, and
// the serf RPC port. It blocks for a few times Options.Patience at most.
func Look(ctx context.Context, o Options) Facts {
	f := Facts{client: o.Version, blind: map[string]string{}}
	f.probes = o.askAll(ctx, o.Endpoints)
	f.askWithToken(ctx, o)
	var others []string
	for _, c := range f.coordinators {
		at := o.endpointOf(c)
		if at != "" && !slices.Contains(o.Endpoints, at) && !slices.Contains(others, at) {
			others = append(others, at)
		}
	}
	slices.Sort(others)
	f.probes = append(f.probes, o.askAll(ctx, others[:min(len(others), max(0, maxEndpoints-len(f.probes)))])...)
	f.lookAtRing(o)
	return f
}

// endpointOf is the base URL of a coordinator that another one names by HOST:PORT;
// all coordinators of a cluster speak TLS, or none. "" where it has none.
func (o Options) endpointOf(c api.Coordinator) string {
	if c.REST == "" || strings.Contains(c.REST, "://") {
		return c.REST
	}
	scheme, _, _ := strings.Cut(o.Endpoints[0], "://")
	return scheme + "://" + c.REST
}

// askAll probes endpoints at the same time; the answers are in their order.
func (o Options) askAll(ctx context.Context, endpoints []string) []probe {
	probes := make([]probe, min(len(endpoints), maxEndpoints))
	var asked sync.WaitGroup
	for i := range probes {
		asked.Go(func() {
			defer o.progress("waiting for an answer of " + endpoints[i])()
			probes[i] = o.ask(ctx, endpoints[i])
		})
	}
	asked.Wait()
	return probes
}

// progress writes a line if the work is not done within a second; the caller
// calls done at its end.
func (o Options) progress(what string) (done func()) {
	if o.Progress == nil {
		return func() {}
	}
	t := time.AfterFunc(progressAfter, func() { _, _ = fmt.Fprintf(o.Progress, "%s …\n", what) })
	return func() { t.Stop() }
}

// askWithToken asks a coordinator that is ready for everything that needs a
// token.
func (f *Facts) askWithToken(ctx context.Context, o Options) {
	var endpoints []string
	for _, p := range f.probes {
		if p.broken == nil {
			endpoints = append(endpoints, p.endpoint)
		}
	}
	needToken := []string{checkAccess, checkNodes, checkNames, checkQuotas}
	blind := func(checks []string, format string, args ...any) {
		for _, check := range checks {
			f.blind[check] = fmt.Sprintf(format, args...)
		}
	}
	if len(endpoints) == 0 {
		blind(append(needToken, checkReady, checkClock, checkVersions, checkCertificates), "no coordinator answers")
		return
	}
	c, err := sdk.NewClient(sdk.Config{Endpoint: strings.Join(endpoints, ","), Token: o.Token, HTTPClient: o.httpClient()})
	if err != nil {
		blind(needToken, "%v", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 4*o.patience())
	defer cancel()
	defer o.progress("waiting for the lists of " + c.Endpoint())()
	nodes, err := c.Nodes().List(ctx, sdk.ListOptions{})
	if status := refusal(err); status != nil {
		f.refused = status
		blind([]string{checkNodes, checkNames, checkQuotas}, "the token is refused")
		return
	}
	if err != nil {
		blind([]string{checkNodes, checkNames}, "%s", plainError(err))
	} else {
		f.nodes = nodes.Items
	}
	if list, err := c.Coordinators(ctx); err == nil {
		f.coordinators = list.Items
	}
	if l, err := c.FeatureLevel(ctx); err == nil {
		f.level = l
	}
	f.askForQuotas(ctx, c)
	if list, err := c.Identity().Authorities(ctx); err == nil {
		f.authorities = list.Items
	}
	if list, err := c.Identity().Operators(ctx); err == nil {
		f.operators = list.Items
	}
}

func (f *Facts) askForQuotas(ctx context.Context, c *sdk.Client) {
	quotas, err := c.ResourceQuotas("").List(ctx, sdk.ListOptions{})
	if err != nil {
		f.blind[checkQuotas] = plainError(err)
		return
	}
	f.quotas = quotas.Items
	if resources, err := c.Resources().List(ctx, sdk.ListOptions{}); err == nil { // an older coordinator has no such kind
		f.resources = resources.Items
	}
	if trees, err := c.QuotaTrees().List(ctx, sdk.ListOptions{}); err == nil {
		f.trees = trees.Items
	}
}

// refusal is the Status of an answer that refuses the token, else nil.
func refusal(err error) *api.Status {
	if status := statusOf(err); status != nil && (status.Code == 401 || status.Code == 403) {
		return status
	}
	return nil
}

// lookAtRing lists the members that the serf RPC port knows, within
// Options.Patience.
func (f *Facts) lookAtRing(o Options) {
	if o.SerfRPC == "" {
		f.blind[checkRing] = "no serf RPC port is named: --serf-rpc 127.0.0.1:7373 on an agent's host, 127.0.0.1:7374 on a coordinator's"
		return
	}
	defer o.progress("waiting for the serf RPC port " + o.SerfRPC)()
	members, err := serfMembers(o)
	if err != nil {
		f.blind[checkRing] = fmt.Sprintf("the serf RPC port %s: %v", o.SerfRPC, err)
		return
	}
	f.members = members
}

func serfMembers(o Options) ([]client.Member, error) {
	c, err := client.ClientFromConfig(&client.Config{Addr: o.SerfRPC, AuthKey: o.SerfToken, Timeout: o.patience()})
	if err != nil {
		return nil, err
	}
	members, err := c.Members()
	_ = c.Close() // nothing was written
	return members, err
}
