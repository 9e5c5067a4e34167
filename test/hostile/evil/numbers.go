package evil

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// tenantNumbers are what a tenant tries by sheer numbers, each request of which is
// permitted.
var tenantNumbers = map[string]func(context.Context, *run) error{
	"many-watches": func(ctx context.Context, r *run) error {
		return r.openMany(ctx, "watch", 400, allocations+"?watch=true")
	},
	"many-waits": func(ctx context.Context, r *run) error {
		return r.openMany(ctx, "wait", 400, jobs+"/"+r.Node+"-1?wait=60s")
	},
	"many-grpc-watches": manyGRPCWatches,
	"many-keys": rush(16, nil, func(r *run, worker, i int) ask {
		name := fmt.Sprintf("%s-k%d", r.Node, worker)
		if i%2 == 1 {
			return ask{label: "delete", method: "DELETE", path: allocations + "/" + name, body: `{"gracePeriodSeconds":0}`}
		}
		return ask{
			label: "create with a key", method: "POST", path: allocations, body: suspended(name, ""),
			header: http.Header{"Idempotency-Key": {fmt.Sprintf("%s-%d-%d", r.Node, worker, i)}, "Content-Type": {"application/json"}},
		}
	}),
	"many-objects": rush(16, nil, func(r *run, worker, i int) ask {
		return ask{label: "create", method: "POST", path: allocations, body: suspended(fmt.Sprintf("%s-o%d-%d", r.Node, worker, i), "")}
	}),
	"giant-documents": rush(8, nil, func(r *run, worker, i int) ask {
		return ask{label: "create", method: "POST", path: allocations, body: suspended(fmt.Sprintf("%s-g%d-%d", r.Node, worker, i), strings.Repeat("x", 255<<10))}
	}),
	"annotation-floods": rush(16, fillOne, func(r *run, worker, i int) ask {
		return ask{label: "patch", method: "PATCH", path: jobs + "/" + r.Node + "-1", body: fmt.Sprintf(`{"metadata":{"annotations":{"a":"%d-%d%s"}}}`, worker, i, strings.Repeat("x", 60<<10))}
	}),
	"selector-floods": rush(32, fillMany, func(_ *run, worker, _ int) ask {
		return ask{label: "list", method: "GET", path: jobs + "?labelSelector=" + giantSelector(worker)}
	}),
	"continue-floods": rush(32, fillMany, func(r *run, worker, i int) ask {
		position := fmt.Sprintf("%s-%d", r.Node, i)
		if i%2 == 1 {
			position = strings.Repeat("%ff", 300) + fmt.Sprint(worker)
		}
		return ask{label: "list", method: "GET", path: jobs + "?limit=1&continue=" + position}
	}),
	"why-floods": rush(32, fillMany, func(r *run, _, i int) ask {
		return ask{label: "why", method: "GET", path: fmt.Sprintf("%s/%s-%d/explain", jobs, r.Node, 1+i%100)}
	}),
	"dry-run-floods": rush(32, nil, func(r *run, worker, _ int) ask {
		return ask{label: "dry run", method: "POST", path: allocations + "?dryRun=All", body: fmt.Sprintf(`{"metadata":{"name":"d%d"},"spec":{"resources":{"requests":{"nvidia.com/gpu":"4"}}}}`, worker)}
	}),
	"yaml-floods": rush(16, nil, func(r *run, worker, i int) ask {
		text := "metadata:\n  name: y\n  annotations:\n" + strings.Repeat("    "+strings.Repeat("k", 20)+": [[[[]]]]\n", 20_000)
		return ask{label: "YAML", method: "POST", path: allocations, body: text[:min(len(text), 900_000)], header: http.Header{"Content-Type": {"application/yaml"}}}
	}),
	"yaml-aliases": rush(16, nil, func(r *run, worker, i int) ask {
		text := "a: &a [" + strings.Repeat("1,", 9_999) + "1]\nmetadata: {name: y}\nspec: [" + strings.Repeat("*a,", 99) + "*a]\n"
		return ask{label: "aliases", method: "POST", path: allocations, body: text, header: http.Header{"Content-Type": {"application/yaml"}}}
	}),
	"many-members": rush(4, nil, func(r *run, worker, i int) ask {
		return ask{label: "large job", method: "POST", path: jobs, body: fmt.Sprintf(`{"metadata":{"name":"%s-m%d-%d"},"spec":{"completions":1000,"suspend":true,"template":{"spec":{"resources":{"requests":{"cpu":"1m"}}}}}}`, r.Node, worker, i)}
	}),
	"member-floods": rush(4, fillMany, func(r *run, worker, i int) ask {
		return ask{label: "members", method: "PATCH", path: fmt.Sprintf("%s/%s-%d", jobs, r.Node, 1+worker), body: fmt.Sprintf(`{"spec":{"parallelism":%d}}`, []int{1000, 1}[i%2])}
	}),
	"page-floods": rush(16, nil, func(_ *run, worker, i int) ask {
		return ask{label: "page", method: "GET", path: []string{"/openapi.yaml", "/openapi.json", "/docs", "/api/v1/nodes", "/api/v1/coordinators", "/api/v1/metrics/queues"}[(worker+i)%6]}
	}),
	"grpc-floods":        grpcFloods,
	"streams-with-token": func(ctx context.Context, r *run) error { return r.tokenStreams(ctx, false) },
	"reset-with-token":   func(ctx context.Context, r *run) error { return r.tokenStreams(ctx, true) },
}

// suspended is an allocation that does not run.
func suspended(name, annotation string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"annotations":{"a":%q}},"spec":{"suspend":true,"resources":{"requests":{"cpu":"1m"}}}}`, name, annotation)
}

func fillOne(ctx context.Context, r *run, c *http.Client) error  { return fill(ctx, r, c, 1) }
func fillMany(ctx context.Context, r *run, c *http.Client) error { return fill(ctx, r, c, 200*r.Size) }

// giantSelector is a selector with the greatest number of terms and values.
func giantSelector(worker int) string {
	var terms []string
	for i := range 20 {
		var values []string
		for v := range 40 {
			values = append(values, fmt.Sprintf("v%d-%d", worker, v))
		}
		terms = append(terms, fmt.Sprintf("k%d notin (%s)", i, strings.Join(values, ",")))
	}
	return url.QueryEscape(strings.Join(terms, ","))
}

// openMany opens n requests of one user that have no end, on connections of their own,
// and counts those that are answered with a refusal.
func (r *run) openMany(ctx context.Context, what string, n int, path string) error {
	c, err := r.client(n)
	if err != nil {
		return err
	}
	c.Timeout = 0
	if err := fillOne(ctx, r, c); err != nil {
		return err
	}
	r.ready()
	ctx, cancel := r.lasting(ctx)
	defer cancel()
	var open, most atomic.Int64
	parallel(n, func(worker int) {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+r.Coordinators[0].REST+path, nil)
		if err != nil {
			return
		}
		q.Header.Set("Authorization", "Bearer "+r.RESTToken)
		if now := open.Add(1); now > most.Load() {
			most.Store(now)
		}
		defer open.Add(-1)
		answer, err := c.Do(q)
		if err != nil { // a wait that has no answer at the end of the attack
			return
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode >= 400 {
			text, _ := io.ReadAll(io.LimitReader(answer.Body, mostRead))
			r.note("%s: %d %s", what, answer.StatusCode, sentence(string(text)))
			r.count(fmt.Sprintf("%s: %d", what, answer.StatusCode))
			return
		}
		r.count(fmt.Sprintf("%s: %d", what, answer.StatusCode))
		_, _ = io.Copy(io.Discard, answer.Body)
	})
	return nil
}

// dial connects to the API over gRPC.
func (r *run) dial() (*grpc.ClientConn, error) {
	trust, err := credentials.NewClientTLSFromFile(r.CAFile, "")
	if err != nil {
		return nil, err
	}
	return grpc.NewClient("passthrough:///"+r.Coordinators[0].REST, grpc.WithTransportCredentials(trust), grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10))
}

// manyGRPCWatches opens 600 watches over gRPC on ten connections and reads one message
// of each.
func manyGRPCWatches(ctx context.Context, r *run) error {
	c, err := r.client(8)
	if err != nil {
		return err
	}
	if err := fillMany(ctx, r, c); err != nil {
		return err
	}
	r.ready()
	ctx, cancel := r.lasting(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+r.RESTToken))
	defer cancel()
	conns := make([]*grpc.ClientConn, 10)
	for i := range conns {
		if conns[i], err = r.dial(); err != nil {
			return err
		}
		defer func() { _ = conns[i].Close() }()
	}
	parallel(600, func(worker int) {
		stream, err := apiv1.NewJobsClient(conns[worker%len(conns)]).Watch(ctx, &apiv1.WatchRequest{Namespace: TenantNamespace})
		if err == nil {
			_, err = stream.Recv()
		}
		if ctx.Err() != nil {
			return
		}
		r.answered("watch", err)
		if err == nil {
			<-ctx.Done() // the rest is never read
		}
	})
	return nil
}

// grpcFloods lists jobs over gRPC, 32 at a time.
func grpcFloods(ctx context.Context, r *run) error {
	c, err := r.client(8)
	if err != nil {
		return err
	}
	if err := fillMany(ctx, r, c); err != nil {
		return err
	}
	conn, err := r.dial()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	r.ready()
	ctx, cancel := r.lasting(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+r.RESTToken))
	defer cancel()
	parallel(32, func(int) {
		for ctx.Err() == nil {
			_, err := apiv1.NewJobsClient(conn).List(ctx, &apiv1.ListRequest{Namespace: TenantNamespace})
			if ctx.Err() == nil {
				r.answered("list", err)
			}
			if err != nil {
				pause(ctx, 5*time.Millisecond)
			}
		}
	})
	return nil
}

// tokenStreams opens 100,000 requests with a good token on one HTTP/2 connection after
// the other, or takes each back at once.
func (r *run) tokenStreams(ctx context.Context, reset bool) error {
	address := r.Coordinators[0].REST
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, f := range []hpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: jobs + "?watch=true"}, {Name: ":authority", Value: address},
		{Name: "authorization", Value: "Bearer " + r.RESTToken, Sensitive: true},
	} {
		if err := e.WriteField(f); err != nil {
			return err
		}
	}
	return r.streamsOf(ctx, address, block.Bytes(), 100_000, reset)
}
