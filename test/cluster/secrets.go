package cluster

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/musterd/muster/test/canary"
)

// mostMetrics bounds the metrics that are read of a program, in bytes.
const mostMetrics = 16 << 20

// judgeMetrics fails the test for each secret in the metrics of a coordinator that still
// answers at the end of the test.
func (c *Cluster) judgeMetrics() {
	c.t.Helper()
	for _, p := range c.Coordinators {
		if p.Alive() {
			canary.Judge(c.t, "the metrics of "+p.Name, c.metrics(p))
		}
	}
}

// metrics is the answer of a coordinator to a request for its metrics, with the headers;
// "" for no answer, as of a program that is paused.
func (c *Cluster) metrics(p *Process) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+p.Address(RESTPort)+"/metrics", nil)
	if err != nil {
		c.t.Error(err)
		return ""
	}
	r.Header.Set("Authorization", "Bearer "+adminToken)
	t := c.transport()
	defer t.CloseIdleConnections()
	answer, err := (&http.Client{Transport: t}).Do(r)
	if err != nil {
		return ""
	}
	defer func() { _ = answer.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, mostMetrics)) // a part is looked at, too
	return string(text)
}
