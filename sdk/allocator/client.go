package allocator

import (
	"context"
	"iter"
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// Config is the settings of a client. The fields are those of sdk.Config.
type Config struct {
	// Endpoint is the server's base URL, or several with commas in between.
	Endpoint string
	// Token is the bearer token; "" sends none.
	Token string
	// CAFile is a PEM file of the authorities by which servers are trusted; "" is
	// the system's.
	CAFile string
	// Certificate proves who calls, where there is no token.
	Certificate sdk.Certificate
	// HTTPClient sends the requests; nil is a client of the SDK's own.
	HTTPClient *http.Client
}

// Client calls one cluster's servers. It is safe for concurrent use.
type Client struct{ all *sdk.Client }

// NewClient checks the configuration; it connects to nothing.
func NewClient(c Config) (*Client, error) {
	all, err := sdk.NewClient(sdk.Config{Endpoint: c.Endpoint, Token: c.Token, CAFile: c.CAFile, Certificate: c.Certificate, HTTPClient: c.HTTPClient})
	if err != nil {
		return nil, err
	}
	return &Client{all}, nil
}

// SDK returns the whole client, with every kind and verb.
func (c *Client) SDK() *sdk.Client { return c.all }

// Allocations are the allocations of one namespace.
type Allocations struct{ all sdk.Allocations }

// Allocations selects a namespace; "" is all of them and serves lists and watches
// alone.
func (c *Client) Allocations(namespace string) Allocations {
	return Allocations{c.all.Allocations(namespace)}
}

// Create submits an allocation and returns it as the server keeps it. The server
// answers at once; a watch says when the allocation runs.
func (a Allocations) Create(ctx context.Context, allocation *Allocation) (*Allocation, error) {
	doc, err := documentOf(allocation)
	if err != nil {
		return nil, err
	}
	return mapped(a.all.Create(ctx, doc, sdk.CreateOptions{}))
}

// Get returns an allocation.
func (a Allocations) Get(ctx context.Context, name string) (*Allocation, error) {
	return mapped(a.all.Get(ctx, name, sdk.GetOptions{}))
}

// ListOptions narrow a list.
type ListOptions struct {
	LabelSelector string
	FieldSelector string
	Limit         int    // of allocations; 0 is no limit
	Continue      string // of the list before, where Limit has cut it

	// ResourceVersion is the state of the first page: "" the newest, "0" the state that
	// the coordinator has, a resourceVersion a state that is not older.
	ResourceVersion string
}

// List returns allocations ordered by namespace and name.
func (a Allocations) List(ctx context.Context, o ListOptions) (*AllocationList, error) {
	got, err := a.all.List(ctx, sdk.ListOptions(o))
	if err != nil {
		return nil, err
	}
	list := &AllocationList{ResourceVersion: got.Metadata.ResourceVersion, Continue: got.Metadata.Continue, Items: make([]Allocation, len(got.Items))}
	for i := range got.Items {
		list.Items[i] = *allocationOf(&got.Items[i])
	}
	return list, nil
}

// All yields allocations page by page. An error is the last pair.
func (a Allocations) All(ctx context.Context, o ListOptions) iter.Seq2[*Allocation, error] {
	return func(yield func(*Allocation, error) bool) {
		for doc, err := range a.all.All(ctx, sdk.ListOptions(o)) {
			if !yield(mapped(doc, err)) {
				return
			}
		}
	}
}

// WaitRunning returns an allocation as soon as it runs. An allocation that has
// ended, or is not there, is an error.
func (a Allocations) WaitRunning(ctx context.Context, name string) (*Allocation, error) {
	return mapped(a.all.WaitFor(ctx, name, sdk.Running[api.Allocation]))
}

// WaitDeleted returns when there is no allocation of that name.
func (a Allocations) WaitDeleted(ctx context.Context, name string) error {
	_, err := a.all.WaitFor(ctx, name, sdk.Deleted[api.Allocation])
	return err
}

// DeleteOptions say how an allocation ends.
type DeleteOptions struct {
	// GracePeriodSeconds is the time between the notice and the forced stop, 0 the
	// server's default.
	GracePeriodSeconds int64
	// Immediate ends the allocation without a grace period.
	Immediate bool
	// PropagationPolicy is that of api.DeleteOptions.
	PropagationPolicy string
	// Preconditions are values that the allocation must have; nil is none.
	Preconditions *Preconditions
	// Reason is kept for people.
	Reason string
}

// documentOf makes the document that is sent.
func (o DeleteOptions) documentOf() api.DeleteOptions {
	doc := api.DeleteOptions{PropagationPolicy: o.PropagationPolicy, Preconditions: o.Preconditions, Reason: o.Reason}
	if o.GracePeriodSeconds != 0 || o.Immediate {
		doc.GracePeriodSeconds = &o.GracePeriodSeconds
	}
	if o.Immediate {
		doc.GracePeriodSeconds = new(int64)
	}
	return doc
}

// Delete ends an allocation and returns its last state.
func (a Allocations) Delete(ctx context.Context, name string, o DeleteOptions) (*Allocation, error) {
	return mapped(a.all.Delete(ctx, name, o.documentOf()))
}

// mapped is the result of a call with the types of this package.
func mapped(doc *api.Allocation, err error) (*Allocation, error) {
	if err != nil || doc == nil {
		return nil, err
	}
	return allocationOf(doc), nil
}
