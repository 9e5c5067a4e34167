package service

import "github.com/musterd/muster/api"

// Gather makes a page in several visits, each of which returns objects and the
// position to go on after. An object that was made or removed between two visits
// shows or not by its position, as between two pages. The resourceVersion is that
// of the first visit.
func Gather[T any](p Page[T], visit func(Page[T]) ([]T, api.ListMeta, error)) (all []T, meta api.ListMeta, err error) {
	limit, step := p.Limit, visitObjects
	if p.Match != nil {
		step = VisitScan
	}
	for scanned := 0; scanned < maxScan; scanned += step {
		p.Limit = min(visitObjects, limit-len(all))
		items, now, err := visit(p)
		if err != nil {
			return nil, meta, err
		}
		if scanned == 0 {
			meta = now
		}
		all, meta.Continue = append(all, items...), now.Continue
		if now.Continue == "" || len(all) >= limit {
			break
		}
		p.After = now.Continue
	}
	return all, meta, nil
}
