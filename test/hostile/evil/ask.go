package evil

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Victim is an object of another tenant. The attacker knows everything about it.
type Victim struct{ Namespace, Name, UID, Key string }

// ask is one request of a tenant.
type ask struct {
	label              string // in the report: "label: STATUS"
	method, path, body string
	header             http.Header // in place of those of a tenant with a good token, where set
	at                 int         // the coordinator, in turn
}

// mostRead bounds how much of an answer an attacker reads, in bytes.
const mostRead = 4 << 20

// send sends a request and returns the status and the answer; 0 for none. The report
// counts the status, and notes the first words of a refusal.
func (r *run) send(ctx context.Context, c *http.Client, a ask) (code int, text string) {
	at := r.Coordinators[a.at%len(r.Coordinators)].REST
	q, err := http.NewRequestWithContext(ctx, a.method, "https://"+at+a.path, strings.NewReader(a.body))
	if err != nil {
		r.note("%s: %v", a.label, err)
		return 0, ""
	}
	q.Header.Set("Authorization", "Bearer "+r.RESTToken)
	if a.body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	if a.method == http.MethodPatch {
		q.Header.Set("Content-Type", "application/merge-patch+json")
	}
	for name, values := range a.header {
		q.Header[name] = values
	}
	answer, err := c.Do(q)
	if err != nil {
		if ctx.Err() == nil {
			r.count(a.label + ": no answer")
			r.note("%s: %v", a.label, err)
		}
		return 0, ""
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, mostRead))
	text = string(raw)
	if answer.StatusCode >= 400 {
		r.note("%s: %d %s", a.label, answer.StatusCode, sentence(text))
	}
	if err == nil || answer.StatusCode >= 400 {
		r.count(fmt.Sprintf("%s: %d", a.label, answer.StatusCode))
	}
	return answer.StatusCode, text
}

// sentence is the message of a refusal, or the beginning of an answer that has none.
func sentence(text string) string {
	_, after, found := strings.Cut(text, `"message":"`)
	if !found {
		return text
	}
	if at := strings.Index(after, `","`); at >= 0 {
		after = after[:at]
	}
	return after
}

// each makes a mode that sends each of some requests, 2 times its size, four at a time in
// no order. The requests of first, in order, have their answers before.
func each(requests func(*run) []ask, first ...ask) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		c, err := r.client(8)
		if err != nil {
			return err
		}
		for _, one := range first {
			r.send(ctx, c, one)
		}
		all := requests(r)
		r.ready()
		parallel(4, func(worker int) {
			for i := worker; i < 2*r.Size*len(all) && ctx.Err() == nil; i += 4 {
				one := all[i%len(all)]
				one.at = i / len(all)
				r.send(ctx, c, one)
			}
		})
		return nil
	}
}

// lasting is the context of an attack: it ends once For is over and all answers of Want
// are there, or when mostWait is over as well.
func (r *run) lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, r.For+mostWait)
	go func() {
		for pause(ctx, r.For) {
			if r.hasAll() {
				cancel()
				return
			}
		}
	}()
	return ctx, cancel
}

// hasAll reports whether all answers of Want are there.
func (r *run) hasAll() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, want := range r.Want {
		has := false
		for answer := range r.report.Answers {
			has = has || strings.HasPrefix(answer, want)
		}
		if !has {
			return false
		}
	}
	return true
}

// rush makes a mode of workers that send one request after the other for as long as the
// attack lasts. before, where not nil, runs before the honest client begins.
func rush(workers int, before func(context.Context, *run, *http.Client) error, next func(r *run, worker, i int) ask) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		c, err := r.client(workers)
		if err != nil {
			return err
		}
		if before != nil {
			if err := before(ctx, r, c); err != nil {
				return err
			}
		}
		r.ready()
		ctx, cancel := r.lasting(ctx)
		defer cancel()
		parallel(workers, func(worker int) {
			for i := 0; ctx.Err() == nil; i++ {
				one := next(r, worker, i)
				one.at = worker
				if code, _ := r.send(ctx, c, one); code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
					pause(ctx, 5*time.Millisecond) // as fast as this machine can: the client has the other core
				}
			}
		})
		return nil
	}
}
