package resttest

import (
	"context"
	"io"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/service"
)

// SetOutput makes pieces the output of a job, which ends behind the last of them.
func (c *Cluster) SetOutput(namespace, name string, pieces ...api.LogChunk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.output == nil {
		c.output = map[string][]api.LogChunk{}
	}
	c.output[namespace+"/"+name] = pieces
}

// HoldOutput keeps the output of a job from ending for readers who follow it.
func (c *Cluster) HoldOutput(namespace, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endless = append(c.endless, namespace+"/"+name)
}

// JobLogs implements service.Logs: the pieces of SetOutput.
func (c *Cluster) JobLogs(_ context.Context, namespace, name string, q service.LogQuery) (service.LogStream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, found := c.output[namespace+"/"+name]
	if !found {
		return nil, lead.NotFound("job", namespace, name)
	}
	s := &output{held: q.Follow && slices.Contains(c.endless, namespace+"/"+name)}
	for _, piece := range all {
		if q.AllMembers || int(piece.Member) == q.Member {
			s.pieces = append(s.pieces, piece)
		}
	}
	return s, nil
}

// output is what is left of a job's output.
type output struct {
	pieces []api.LogChunk
	held   bool // no end follows
}

// Next implements service.LogStream.
func (o *output) Next(ctx context.Context) (*api.LogChunk, error) {
	switch {
	case len(o.pieces) == 0 && o.held:
		<-ctx.Done()
		return nil, ctx.Err()
	case len(o.pieces) == 0:
		return nil, io.EOF
	}
	piece := o.pieces[0]
	o.pieces = o.pieces[1:]
	return &piece, nil
}

// Close implements service.LogStream.
func (*output) Close() {}
