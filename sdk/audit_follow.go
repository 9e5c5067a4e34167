package sdk

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/musterd/muster/api"
)

// Times of FollowAudit. An entry has the time when its request began, so an entry may
// come behind entries that are newer: by auditLate at most, or it is not seen.
const (
	auditEvery = 2 * time.Second
	auditLate  = time.Minute
	auditPage  = 1000
	auditFirst = 100 // entries at the beginning, where no limit is given
)

// FollowAudit yields the newest entries of a selection, at most o.Limit (0 = 100), and then each
// further one, oldest first, until ctx ends or an error, which is the last pair. It asks
// every 2 s, and asks again where no coordinator answers; a token that is revoked ends
// it with a 401 at the next question.
func (c *Client) FollowAudit(ctx context.Context, o AuditOptions) iter.Seq2[*api.AuditEntry, error] {
	return func(yield func(*api.AuditEntry, error) bool) {
		o.Limit = cmp.Or(o.Limit, auditFirst)
		f := auditFollower{client: c, options: o, seen: map[string]time.Time{}}
		for first := true; ; first = false {
			entries, err := f.next(ctx, first)
			if err != nil && (first || ctx.Err() != nil || !passes(err)) {
				yield(nil, err)
				return
			}
			for i := range entries {
				if !yield(&entries[i], nil) {
					return
				}
			}
			select {
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			case <-time.After(auditEvery):
			}
		}
	}
}

// passes reports whether an error of a question may pass by itself: a connection fails or
// takes too long, or a coordinator is too busy. An answer that is no list of entries does
// not pass. The caller looks at its own context first: a connection that takes too long
// is a DeadlineExceeded, too.
func passes(err error) bool {
	var status *api.Status
	if !errors.As(err, &status) {
		var broken *url.Error
		return errors.As(err, &broken)
	}
	return status.Code == http.StatusTooManyRequests || status.Code >= http.StatusInternalServerError
}

// auditFollower asks for entries that it has not seen yet.
//
// Invariant: seen has the entries that are not older than since.
type auditFollower struct {
	client  *Client
	options AuditOptions
	since   time.Time
	seen    map[string]time.Time
}

// next returns the entries that came since the last call, oldest first. The first call
// returns the newest ones, and notes all others that are not older than auditLate: they
// were there before.
func (f *auditFollower) next(ctx context.Context, first bool) ([]api.AuditEntry, error) {
	o := f.options
	o.Since, o.Limit = later(o.Since, f.since), auditPage
	var fresh []api.AuditEntry
	for {
		page, err := f.client.Audit(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, e := range page.Items {
			if _, seen := f.seen[e.ID]; !seen {
				fresh = append(fresh, e)
			}
		}
		if o.Continue = page.Metadata.Continue; o.Continue == "" || first && len(fresh) >= f.options.Limit && isOld(fresh) {
			break
		}
	}
	f.note(fresh)
	if most := f.options.Limit; first && len(fresh) > most {
		fresh = fresh[:most]
	}
	slices.Reverse(fresh)
	return fresh, nil
}

// isOld reports whether the last of some entries, the newest first, is so old that no
// entry before it is asked for again.
func isOld(entries []api.AuditEntry) bool {
	if len(entries) == 0 {
		return false
	}
	newest, err := time.Parse(time.RFC3339, entries[0].Time)
	oldest, failed := time.Parse(time.RFC3339, entries[len(entries)-1].Time)
	return err != nil || failed != nil || newest.Sub(oldest) > auditLate+time.Second
}

// note takes over that entries were seen.
func (f *auditFollower) note(entries []api.AuditEntry) {
	for _, e := range entries {
		at, err := time.Parse(time.RFC3339, e.Time)
		if err != nil {
			at = f.since
		}
		f.seen[e.ID], f.since = at, later(f.since, at.Add(-auditLate))
	}
	maps.DeleteFunc(f.seen, func(_ string, at time.Time) bool { return at.Before(f.since.Truncate(time.Second)) })
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
