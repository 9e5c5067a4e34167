package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/musterd/muster/api"
)

// CreateOptions modify a create.
type CreateOptions struct {
	// Wait is how long the server may wait for the object to run before it
	// answers, at most 10 min.
	Wait time.Duration
	// IdempotencyKey, the same on a repeated create, makes it happen once; ""
	// draws a fresh one for each call.
	IdempotencyKey string
}

// GetOptions modify a get. Wait is as in CreateOptions.
type GetOptions struct {
	Wait time.Duration
	// ResourceVersion is the state that the answer shows: "" has every write that was
	// acknowledged to anybody before the get; "0" is the state that the coordinator has,
	// quicker and perhaps a moment old; a resourceVersion is a state that is not older.
	ResourceVersion string
}

// first is the options of a get that takes them as an optional argument.
func first(o []GetOptions) GetOptions {
	if len(o) == 0 {
		return GetOptions{}
	}
	return o[0]
}

func (o GetOptions) query() url.Values {
	q := waitQuery(o.Wait)
	if o.ResourceVersion == "" {
		return q
	}
	if q == nil {
		q = url.Values{}
	}
	q.Set("resourceVersion", o.ResourceVersion)
	return q
}

// ExplainOptions say how much an explanation holds. EveryNode adds the answer of
// each node, and all names of each group of nodes.
type ExplainOptions struct{ EveryNode bool }

func (o ExplainOptions) query() url.Values {
	if !o.EveryNode {
		return nil
	}
	return url.Values{"nodes": {"all"}}
}

// ListOptions narrow a list; the zero value lists everything. A list is asked
// for page by page, of at most 500 objects each.
type ListOptions struct {
	LabelSelector string
	FieldSelector string
	Limit         int    // of objects, over all pages; 0 = no limit
	Continue      string // of the list before, where Limit has cut it

	// ResourceVersion is the state of the first page, as of GetOptions.
	ResourceVersion string
}

func (o ListOptions) query() url.Values {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	set("labelSelector", o.LabelSelector)
	set("fieldSelector", o.FieldSelector)
	set("continue", o.Continue)
	set("resourceVersion", o.ResourceVersion)
	if o.Limit > 0 {
		q.Set("limit", strconv.Itoa(o.Limit))
	}
	return q
}

func waitQuery(wait time.Duration) url.Values {
	if wait <= 0 {
		return nil
	}
	return url.Values{"wait": {wait.String()}}
}

// collection is the path of a kind's objects; in namespace "" of all.
func collection(namespace, kind string) string {
	if namespace == "" {
		return "/api/v1/" + kind
	}
	return "/api/v1/namespaces/" + url.PathEscape(namespace) + "/" + kind
}

// objects are the calls that allocations and jobs share.
type objects struct {
	client *Client
	path   string
	// changes are the parameters of each change; nil for none.
	changes url.Values
}

// at is the path of an object. The domain of a resource's name is a segment of its own;
// servers refuse an escaped slash.
func (o objects) at(name, verb string) string {
	path := o.path + "/"
	if domain, rest, has := strings.Cut(name, "/"); has && o.path == collection("", "resources") {
		path, name = path+url.PathEscape(domain)+"/", rest
	}
	return path + url.PathEscape(name) + verb
}

func (o objects) get(name string, g GetOptions) request {
	return request{method: http.MethodGet, path: o.at(name, ""), query: g.query()}
}

func (o objects) list(l ListOptions) request {
	return request{method: http.MethodGet, path: o.path, query: l.query()}
}

// patch builds a request that carries a merge patch.
func (o objects) patch(name string, patch []byte) request {
	return request{method: http.MethodPatch, path: o.at(name, ""), query: o.changes, contentType: "application/merge-patch+json", body: patch}
}

// with builds a request that carries delete options.
func (o objects) with(method, path string, d api.DeleteOptions) request {
	r := request{method: method, path: path, contentType: "application/json"}
	if d != (api.DeleteOptions{}) {
		r.body, _ = json.Marshal(d) // strings and integers always encode
	}
	return r
}

// Allocations are the allocations of one namespace.
type Allocations struct {
	objects
	Followed[api.Allocation]
}

// Allocations selects a namespace; "" is all of them and serves lists and watches alone.
func (c *Client) Allocations(namespace string) Allocations {
	return Allocations{objects{client: c, path: collection(namespace, "allocations")}, followed[api.Allocation](c, "allocations", namespace)}
}

// Create submits an allocation and returns it as the server keeps it.
func (a Allocations) Create(ctx context.Context, allocation *api.Allocation, o CreateOptions) (*api.Allocation, error) {
	return create[api.Allocation](ctx, a.client, a.path, allocation, o)
}

// Get returns an allocation, after Wait at the latest where it does not run
// yet.
func (a Allocations) Get(ctx context.Context, name string, o GetOptions) (*api.Allocation, error) {
	return call[api.Allocation](ctx, a.client, a.get(name, o))
}

// List returns allocations ordered by namespace and name.
func (a Allocations) List(ctx context.Context, o ListOptions) (*api.AllocationList, error) {
	return listAll(ctx, a.objects, o, func(l *api.AllocationList) (*api.ListMeta, *[]api.Allocation) { return &l.Metadata, &l.Items })
}

// Delete ends an allocation and returns its last state.
func (a Allocations) Delete(ctx context.Context, name string, o api.DeleteOptions) (*api.Allocation, error) {
	return call[api.Allocation](ctx, a.client, a.with(http.MethodDelete, a.at(name, ""), o))
}

// Release ends the allocations of the namespace that a label selector selects, and
// returns once every end is durable. With DryRun it ends none. An empty selector is
// refused.
func (a Allocations) Release(ctx context.Context, o api.BulkReleaseOptions) (*api.BulkRelease, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return call[api.BulkRelease](ctx, a.client, request{method: http.MethodPost, path: a.path + "/bulk-release", contentType: "application/json", body: body})
}

// Explain explains why an allocation does not run, whether it can run, and which change
// would help.
func (a Allocations) Explain(ctx context.Context, name string, o ExplainOptions) (*api.Explanation, error) {
	return call[api.Explanation](ctx, a.client, request{method: http.MethodGet, path: a.at(name, "/explain"), query: o.query()})
}

// Try explains the outcome of an allocation that would be submitted now: the nodes where
// it would run, or why it would wait. Nothing is stored.
func (a Allocations) Try(ctx context.Context, allocation *api.Allocation) (*api.Explanation, error) {
	return try(ctx, a.client, a.path, allocation)
}

// try submits a document as a dry run.
func try(ctx context.Context, c *Client, path string, document any) (*api.Explanation, error) {
	body, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", document, err)
	}
	return call[api.Explanation](ctx, c, request{
		method: http.MethodPost, path: path, query: url.Values{"dryRun": {"All"}}, contentType: "application/json", body: body,
	})
}

// Jobs are the jobs of one namespace.
type Jobs struct {
	objects
	Followed[api.Job]
}

// Jobs selects a namespace; "" is all of them and serves List alone.
func (c *Client) Jobs(namespace string) Jobs {
	return Jobs{objects{client: c, path: collection(namespace, "jobs")}, followed[api.Job](c, "jobs", namespace)}
}

// Create submits a job and returns it as the server keeps it.
func (j Jobs) Create(ctx context.Context, job *api.Job, o CreateOptions) (*api.Job, error) {
	return create[api.Job](ctx, j.client, j.path, job, o)
}

// Get returns a job, after Wait at the latest where it does not run yet.
func (j Jobs) Get(ctx context.Context, name string, o GetOptions) (*api.Job, error) {
	return call[api.Job](ctx, j.client, j.get(name, o))
}

// List returns jobs ordered by namespace and name.
func (j Jobs) List(ctx context.Context, o ListOptions) (*api.JobList, error) {
	return listAll(ctx, j.objects, o, func(l *api.JobList) (*api.ListMeta, *[]api.Job) { return &l.Metadata, &l.Items })
}

// Cancel ends a job and keeps its object.
func (j Jobs) Cancel(ctx context.Context, name string, o api.DeleteOptions) (*api.JobStatus, error) {
	answer, err := call[struct {
		Status api.JobStatus `json:"status"`
	}](ctx, j.client, j.with(http.MethodPost, j.at(name, "/cancel"), o))
	if err != nil {
		return nil, err
	}
	return &answer.Status, nil
}

// Boost gives the job's members that wait a greater priority for a while.
func (j Jobs) Boost(ctx context.Context, name string, o api.BoostOptions) (*api.Boost, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return call[api.Boost](ctx, j.client, request{method: http.MethodPost, path: j.at(name, "/boost"), contentType: "application/json", body: body})
}

// Delete ends a job, removes its object and returns its last state.
func (j Jobs) Delete(ctx context.Context, name string, o api.DeleteOptions) (*api.Job, error) {
	return call[api.Job](ctx, j.client, j.with(http.MethodDelete, j.at(name, ""), o))
}

// Explain explains why a job, or the rest of a job, does not run.
func (j Jobs) Explain(ctx context.Context, name string, o ExplainOptions) (*api.Explanation, error) {
	return call[api.Explanation](ctx, j.client, request{method: http.MethodGet, path: j.at(name, "/explain"), query: o.query()})
}

// Try explains the outcome of a job that would be submitted now, as for an allocation.
func (j Jobs) Try(ctx context.Context, job *api.Job) (*api.Explanation, error) {
	return try(ctx, j.client, j.path, job)
}

// Preempt ends an allocation of a namespace under notice, and returns once that
// is durable. After a broken connection it may be asked again.
func (c *Client) Preempt(ctx context.Context, namespace string, p api.PreemptionRequest) (*api.Preemption, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return call[api.Preemption](ctx, c, request{
		method: http.MethodPost, path: collection(namespace, "preemptions"), contentType: "application/json", body: body,
	})
}

// Nodes are the hosts.
type Nodes struct {
	objects
	Followed[api.Node]
}

// Nodes selects the hosts.
func (c *Client) Nodes() Nodes {
	return Nodes{objects{client: c, path: collection("", "nodes")}, followed[api.Node](c, "nodes", "")}
}

// Create creates a node: its labels, annotations and taints, and in the spec the
// capacity that its host is expected to have. The status of the answer has a bootstrap
// token for the host. It is sent once: a node is created once.
func (n Nodes) Create(ctx context.Context, node *api.Node) (*api.Node, error) {
	return send[api.Node](ctx, n.objects, http.MethodPost, n.path, node)
}

// PatchStatus lowers the amounts of a node that are handed out, or ends that.
func (n Nodes) PatchStatus(ctx context.Context, name string, p api.NodeStatusPatch) (*api.Node, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return call[api.Node](ctx, n.client, request{method: http.MethodPatch, path: n.at(name, "/status"), contentType: "application/merge-patch+json", body: body})
}

// Get returns a node, in the newest state or in that of o, of which at most one counts.
func (n Nodes) Get(ctx context.Context, name string, o ...GetOptions) (*api.Node, error) {
	return call[api.Node](ctx, n.client, n.get(name, first(o)))
}

// List returns nodes ordered by name.
func (n Nodes) List(ctx context.Context, o ListOptions) (*api.NodeList, error) {
	return listAll(ctx, n.objects, o, func(l *api.NodeList) (*api.ListMeta, *[]api.Node) { return &l.Metadata, &l.Items })
}

// Cordon keeps new work off a node.
func (n Nodes) Cordon(ctx context.Context, name string) (*api.Node, error) {
	return call[api.Node](ctx, n.client, n.patch(name, []byte(`{"spec":{"unschedulable":true}}`)))
}

// Uncordon lets new work onto a node again.
func (n Nodes) Uncordon(ctx context.Context, name string) (*api.Node, error) {
	return call[api.Node](ctx, n.client, n.patch(name, []byte(`{"spec":{"unschedulable":false}}`)))
}

// Patch changes a node's labels, annotations, taints or whether it takes new
// work. With a resourceVersion it is refused with 409 where the node has another
// one.
func (n Nodes) Patch(ctx context.Context, name string, p api.NodePatch) (*api.Node, error) {
	doc, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return call[api.Node](ctx, n.client, n.patch(name, doc))
}

// Approve approves all that a node has registered; with a resourceVersion only
// if the node has that still. It may be repeated.
func (n Nodes) Approve(ctx context.Context, name string, o api.ApproveOptions) (*api.Node, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return call[api.Node](ctx, n.client, request{method: http.MethodPost, path: n.at(name, "/approve"), contentType: "application/json", body: body})
}

// Drain cordons a node and gives notice to all units that run there. Repeated, Drain
// returns the units that are left.
func (n Nodes) Drain(ctx context.Context, name string, o api.DrainOptions) (*api.Drain, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return call[api.Drain](ctx, n.client, request{method: http.MethodPost, path: n.at(name, "/drain"), contentType: "application/json", body: body})
}

// Delete forgets a node that has left for good, and returns it as it was. The
// request is refused while the node's agent answers and while anything is granted there. A node
// that comes back registers as a new one.
func (n Nodes) Delete(ctx context.Context, name string) (*api.Node, error) {
	return call[api.Node](ctx, n.client, request{method: http.MethodDelete, path: n.at(name, "")})
}

// DeleteIf is Delete of a node that has the required values; another one is left as it
// is, and the answer is 409.
func (n Nodes) DeleteIf(ctx context.Context, name string, require api.Preconditions) (*api.Node, error) {
	return call[api.Node](ctx, n.client, n.with(http.MethodDelete, n.at(name, ""), api.DeleteOptions{Preconditions: &require}))
}

// Fence makes nothing count on a node's agent until it registers again; with
// ConfirmDead all that has members there ends as NodeLost. The request is refused
// while the agent answers, unless forced. The request may be repeated.
func (n Nodes) Fence(ctx context.Context, name string, o api.FenceOptions) (*api.Node, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return call[api.Node](ctx, n.client, request{method: http.MethodPost, path: n.at(name, "/fence"), contentType: "application/json", body: body})
}

// Reconcile ends the quarantine of a node after the store was restored from a
// backup; without a mode it shows the grants of the node's agent beside those of the
// store. The request may be repeated.
func (n Nodes) Reconcile(ctx context.Context, name string, o api.ReconcileOptions) (*api.Reconciliation, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return call[api.Reconciliation](ctx, n.client, request{method: http.MethodPost, path: n.at(name, "/reconcile"), contentType: "application/json", body: body})
}

// Coordinators shows every coordinator, the leader first, as it answers now.
func (c *Client) Coordinators(ctx context.Context) (*api.CoordinatorList, error) {
	return call[api.CoordinatorList](ctx, c, request{method: http.MethodGet, path: "/api/v1/coordinators"})
}

// Evictions returns the notices of evictions on a node.
func (n Nodes) Evictions(ctx context.Context, name string) (*api.EvictionNoticeList, error) {
	return call[api.EvictionNoticeList](ctx, n.client, request{method: http.MethodGet, path: n.at(name, "/evictions")})
}
