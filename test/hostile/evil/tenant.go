package evil

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/musterd/muster/sdk"
)

// TenantNamespace is the namespace that the hostile tenant works in.
const TenantNamespace = "hostile"

const (
	root        = "/api/v1/namespaces/" + TenantNamespace
	allocations = root + "/allocations"
	jobs        = root + "/jobs"
)

// tenantModes are a client with a token of the REST API (level A2).
var tenantModes = map[string]func(context.Context, *run) error{
	"queue-flood": queueFlood,
	"list-storm": func(ctx context.Context, r *run) error {
		c, err := r.client(64)
		if err != nil {
			return err
		}
		if err := fill(ctx, r, c, 200*r.Size); err != nil {
			return err
		}
		r.ready()
		until := time.Now().Add(r.For)
		parallel(32, func(int) {
			for time.Now().Before(until) && ctx.Err() == nil {
				r.request(ctx, c, "GET jobs", http.MethodGet, jobs, nil, nil)
			}
		})
		return nil
	},
	"stalled-lists": func(ctx context.Context, r *run) error {
		c, err := r.client(16)
		if err != nil {
			return err
		}
		// A page has 500 jobs at most: more of them make no list larger, and what jobs
		// take themselves is "queue-flood".
		if err := fill(ctx, r, c, min(400*r.Size, 500)); err != nil {
			return err
		}
		r.ready()
		return r.stalled(ctx, 100, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", jobs, r.RESTToken)
			return err
		})
	},
	"stalled-watches": func(ctx context.Context, r *run) error {
		c, err := r.client(16)
		if err != nil {
			return err
		}
		if err := fill(ctx, r, c, min(400*r.Size, 500)); err != nil {
			return err
		}
		r.ready()
		return r.stalled(ctx, 200, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "GET %s?watch=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", jobs, r.RESTToken)
			return err
		})
	},
	"slow-bodies": func(ctx context.Context, r *run) error {
		r.ready()
		return r.stalled(ctx, min(1000, 300*r.Size), func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 1048575\r\n\r\n{", allocations, r.RESTToken)
			return err
		})
	},
	"labels-60000": post(func(r *run) (string, []byte, http.Header) {
		var b bytes.Buffer
		b.WriteString(`{"metadata":{"name":"labels","labels":{`)
		for i := range 60_000 {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"l%d":"x"`, i)
		}
		b.WriteString(`}},"spec":{"resources":{"requests":{"cpu":"1m"}}}}`)
		return allocations, b.Bytes(), nil
	}),
	"selector-60000": post(func(r *run) (string, []byte, http.Header) {
		var b bytes.Buffer
		b.WriteString(`{"metadata":{"name":"selector"},"spec":{"resources":{"requests":{"cpu":"1m"}},"scheduling":{"nodeSelector":{`)
		for i := range 30_000 {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"l%d":"x"`, i)
		}
		b.WriteString(`}}}}`)
		return allocations, b.Bytes(), nil
	}),
	"gzip-bomb": post(func(r *run) (string, []byte, http.Header) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		zeros := make([]byte, 1<<20)
		for range 200 {
			_, _ = z.Write(zeros) // into memory
		}
		_ = z.Close()
		return allocations, b.Bytes(), http.Header{"Content-Encoding": {"gzip"}}
	}),
	"huge-body": post(func(r *run) (string, []byte, http.Header) {
		return allocations, bytes.Repeat([]byte(" "), 64<<20), nil
	}),
	"huge-headers": post(func(r *run) (string, []byte, http.Header) {
		h := http.Header{}
		for i := range 2000 {
			h.Set(fmt.Sprint("X-Header-", i), strings.Repeat("x", 100))
		}
		return allocations, []byte("{}"), h
	}),
	"deep-json": post(func(r *run) (string, []byte, http.Header) {
		return allocations, append(append([]byte(`{"metadata":`), bytes.Repeat([]byte(`{"a":`), 100_000)...), '1'), nil
	}),
	"name-escapes": post(func(r *run) (string, []byte, http.Header) {
		return allocations, []byte(`{"metadata":{"name":"\u001b[2J"},"spec":{"resources":{"requests":{"cpu":"1m"}}}}`), nil
	}),
}

// client is an HTTP client that believes the cluster's authority.
func (r *run) client(connections int) (*http.Client, error) {
	trust, err := sdk.Trust(r.CAFile)
	if err != nil {
		return nil, err
	}
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		TLSClientConfig: trust, MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections,
	}}, nil
}

// request sends one request and counts its answer by status.
func (r *run) request(ctx context.Context, c *http.Client, what, method, path string, body []byte, header http.Header) int {
	q, err := http.NewRequestWithContext(ctx, method, "https://"+r.Coordinators[0].REST+path, bytes.NewReader(body))
	if err != nil {
		r.note("%s: %v", what, err)
		return 0
	}
	for name, values := range header {
		q.Header[name] = values
	}
	q.Header.Set("Authorization", "Bearer "+r.RESTToken)
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.Do(q)
	if err != nil {
		r.count(what + ": no answer")
		r.note("%s: %v", what, err)
		return 0
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 400 {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
		r.note("%s: %d %s", what, answer.StatusCode, text)
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	r.count(fmt.Sprintf("%s: %d", what, answer.StatusCode))
	return answer.StatusCode
}

// post makes a mode of one document that is refused, sent several times.
func post(make func(*run) (path string, body []byte, header http.Header)) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		c, err := r.client(4)
		if err != nil {
			return err
		}
		r.ready()
		path, body, header := make(r)
		parallel(4, func(int) {
			for range 2 * r.Size {
				r.request(ctx, c, "POST", http.MethodPost, path, body, header)
			}
		})
		return nil
	}
}

// job is a job that never fits, so that it waits.
func job(name string) []byte {
	return fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"template":{"spec":{"resources":{"requests":{"nvidia.com/gpu":"8","cpu":"1m"}},"scheduling":{"nodeSelector":{"example.org/nowhere":"yes"}}}}}}`, name)
}

// fill queues n jobs.
func fill(ctx context.Context, r *run, c *http.Client, n int) error {
	var next atomic.Int64
	parallel(8, func(int) {
		for i := next.Add(1); i <= int64(n) && ctx.Err() == nil; i = next.Add(1) {
			r.request(ctx, c, "POST jobs", http.MethodPost, jobs, job(fmt.Sprintf("%s-%d", r.Node, i)), nil)
		}
	})
	return ctx.Err()
}

// queueFlood queues jobs that never fit until it is refused: 1,000 for size 1,
// up to 20,000.
func queueFlood(ctx context.Context, r *run) error {
	c, err := r.client(16)
	if err != nil {
		return err
	}
	r.ready()
	ctx, cancel := context.WithTimeout(ctx, r.For)
	defer cancel()
	if err := fill(ctx, r, c, min(20_000, 1_000*r.Size)); err != nil {
		r.note("not all were sent: %v", err)
	}
	return nil
}

// stalled opens n connections, sends a request's beginning on each and neither
// reads nor writes any more.
func (r *run) stalled(ctx context.Context, n int, write func(io.Writer) error) error {
	trust, err := sdk.Trust(r.CAFile)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.For)
	defer cancel()
	var refused, answered atomic.Int64
	parallel(n, func(int) {
		dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 3 * time.Second, Control: smallBuffer}, Config: trust.Clone()}
		conn, err := dialer.DialContext(ctx, "tcp", r.Coordinators[0].REST)
		if err != nil {
			refused.Add(1)
			return
		}
		defer conn.Close()
		if err := write(conn); err != nil {
			refused.Add(1)
			return
		}
		<-ctx.Done()
		_ = conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if line, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
			answered.Add(1)
			r.count("stalled: " + strings.TrimSpace(line))
		} else if isClosed(err) {
			r.count("stalled: closed by the server")
		}
	})
	r.note("%d stalled: %d refused, %d with an answer", n, refused.Load(), answered.Load())
	return nil
}

func isClosed(err error) bool {
	late, ok := err.(net.Error)
	return !ok || !late.Timeout()
}
