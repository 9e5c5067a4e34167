package sdk

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"

	"github.com/musterd/muster/api"
)

// WatchEvictions yields the notices of evictions on a node until ctx ends, each
// once: first the notices that stand, then each as it is given. after is the
// resourceVersion of the last notice, to go on behind it; "" begins with the
// notices that stand. It goes on at another server as Watch does, and ends with
// the same errors.
func (n Nodes) WatchEvictions(ctx context.Context, name, after string) iter.Seq2[api.EvictionNotice, error] {
	return func(yield func(api.EvictionNotice, error) bool) {
		w := &watching[api.EvictionNotice]{
			client: n.client, path: n.at(name, "/evictions"), query: url.Values{}, after: after,
			yield: func(notice api.EvictionNotice) bool { return yield(notice, nil) },
			read:  notice,
		}
		if err := w.run(ctx); err != nil {
			yield(api.EvictionNotice{}, err)
		}
	}
}

// notice reads a line of a watch that is a notice.
func notice(text json.RawMessage) (n api.EvictionNotice, at string, known bool, err error) {
	err = json.Unmarshal(text, &n)
	return n, n.ResourceVersion, n.Type == "EVICTION", err
}
