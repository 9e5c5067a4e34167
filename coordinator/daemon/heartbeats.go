package daemon

import (
	"context"
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/redis"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

// openRedis makes the sink of heartbeats, nil for none. It connects to nothing.
func (d *Daemon) openRedis(registry prometheus.Registerer) (err error) {
	o := d.config.History.Redis
	if o.Address == "" {
		return nil
	}
	o.Log, o.Free = d.log, func(ctx context.Context, node resource.NodeID) (redis.Free, bool, error) {
		return freeOf(ctx, d.coordinator, node)
	}
	if d.redis, err = redis.Open(o); err != nil {
		return err
	}
	count := func(name, help string, value func(redis.Figures) int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "muster", Subsystem: "redis", Name: name, Help: help}, func() float64 { return float64(value(d.redis.Figures())) })
	}
	for _, c := range []prometheus.Collector{
		count("heartbeats_total", "Heartbeats written to Redis, the newest of each node.", func(f redis.Figures) int64 { return f.Written }),
		count("errors_total", "Failed writes to Redis; the heartbeats wait for the next write.", func(f redis.Figures) int64 { return f.Failures }),
		count("heartbeats_dropped_total", "Heartbeats that were lost because too many nodes waited for Redis.", func(f redis.Figures) int64 { return f.Dropped }),
	} {
		if err := registry.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// heard is the hook of heartbeats; nil where they are not kept.
func (d *Daemon) heard() func(history.Heartbeat) {
	if d.history == nil && d.redis == nil {
		return nil
	}
	return func(h history.Heartbeat) {
		if d.history != nil {
			d.history.sampler.Hear(h)
		}
		if d.redis == nil {
			return
		}
		beat := redis.Beat{Node: h.Node, At: h.At}
		if h.MembersRunning != nil {
			beat.Pods = int(*h.MembersRunning)
		}
		d.redis.Offer(beat)
	}
}

// freeOf is the free amount of a node by this coordinator's copy of the store; false for a node that is
// not registered.
func freeOf(ctx context.Context, nodes interface {
	GetNode(ctx context.Context, name string) (*api.Node, error)
}, node resource.NodeID,
) (redis.Free, bool, error) {
	n, err := nodes.GetNode(service.WithAsOf(ctx, service.AsOf{Cached: true}), string(node))
	var refused *api.Status
	switch {
	case errors.As(err, &refused) && refused.Code == http.StatusNotFound:
		return redis.Free{}, false, nil
	case err != nil:
		return redis.Free{}, false, err
	}
	of := func(name resource.Name) int64 {
		amount, fault := resource.ParseAmount(name, n.Status.Available[name])
		if n.Status.Available[name] != "" {
			err = errors.Join(err, fault)
		}
		return max(0, amount)
	}
	free := redis.Free{CPU: resource.Millicores(of(resource.CPU)), Memory: resource.Bytes(of(resource.Memory)), GPUs: int(of(resource.GPU) / resource.GPU.Scale())}
	return free, true, err
}
