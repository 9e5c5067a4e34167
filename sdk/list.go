package sdk

import (
	"context"
	"fmt"

	"github.com/musterd/muster/api"
)

// listAll gets a list page by page: all objects, or as many as o.Limit says.
// Each page shows the state at its own time: an object that is made or removed
// meanwhile is listed or not by its position. The resourceVersion is that of
// the first page.
func listAll[L, T any](ctx context.Context, o objects, options ListOptions, parts func(*L) (*api.ListMeta, *[]T)) (*L, error) {
	var all *L
	var meta *api.ListMeta
	var items *[]T
	for limit := options.Limit; ; {
		page, err := call[L](ctx, o.client, o.list(options))
		if err != nil {
			return nil, err
		}
		next, more := parts(page)
		if all == nil {
			all, meta, items = page, next, more
		} else {
			*items = append(*items, *more...)
			meta.Continue = next.Continue
		}
		switch {
		case meta.Continue == "" || limit > 0 && len(*items) >= limit:
			return all, nil
		case meta.Continue == options.Continue:
			return nil, o.stuck(len(*items))
		case limit > 0:
			options.Limit = limit - len(*items)
		}
		options.Continue = meta.Continue
	}
}

// stuck is the error about a list whose next page is the same again.
func (o objects) stuck(given int) error {
	return fmt.Errorf("GET %s%s: the server answers with the same continue token again, after %d objects", o.client.Endpoint(), o.path, given)
}
