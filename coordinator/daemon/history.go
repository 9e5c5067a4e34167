package daemon

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/projector"
	"github.com/musterd/muster/coordinator/history/redis"
	"github.com/musterd/muster/coordinator/history/sampler"
	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/resource"
)

// History is where the history of the cluster is kept. Without a DSN there is none.
type History struct {
	DSN string // of warehouse.Open; it may have a password
	// SpoolDir is the folder of rows that wait for the database; "" is the folder
	// history of DataDir.
	SpoolDir string
	// SpoolWait is projector.Config's.
	SpoolWait time.Duration
	// Prices are the price list; nil leaves the history's as it is.
	Prices *usage.Prices
	// Retention is how long rows stay.
	Retention warehouse.Retention
	// Redis is a server that gets the newest heartbeat of each node; without an address
	// there is none. New sets Free and Log.
	Redis redis.Options
}

// historian is the history in this process.
type historian struct {
	door      *door
	projector *projector.Projector
	sampler   *sampler.Sampler
}

// openHistory makes the projector, nil for no history. The database is opened when it is
// needed: one that is away stops nothing.
func (d *Daemon) openHistory(registry prometheus.Registerer) {
	c := d.config
	if c.History.DSN == "" {
		return
	}
	h := &historian{door: &door{dsn: c.History.DSN, turn: make(chan struct{}, 1)}}
	h.projector = projector.New(projector.Config{
		Name: c.ID, Cluster: c.Cluster, Store: d.store, Warehouse: h.door, SpoolDir: cmp.Or(c.History.SpoolDir, filepath.Join(c.DataDir, "history")),
		SpoolWait: c.History.SpoolWait, LeaseTTL: c.LeaseTTL, Logger: d.log, Metrics: registry,
	})
	h.sampler = sampler.New(h.door.recordHeartbeats, d.log, registry)
	d.history = h
}

// run projects, sums up, writes samples and removes old rows, until ctx ends or the projector cannot begin.
func (h *historian) run(ctx context.Context, c History, log *slog.Logger) error {
	summing, stop := context.WithCancel(ctx)
	var sums sync.WaitGroup
	sums.Go(func() { h.sum(summing, c.Prices, log) })
	sums.Go(func() { h.sampler.Run(summing) })
	sums.Go(func() { h.prune(summing, c.Retention, log) })
	err := h.projector.Run(ctx)
	stop()
	sums.Wait()
	return errors.Join(err, h.door.close())
}

// door opens a warehouse at the first call, and again after one that failed. Its methods
// may be called from any goroutine.
type door struct {
	dsn  string
	turn chan struct{} // of capacity 1: who holds it uses open
	open *warehouse.Warehouse
}

// warehouse returns the open warehouse. Only one call at a time opens it.
func (d *door) warehouse(ctx context.Context) (*warehouse.Warehouse, error) {
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-d.turn }()
	if d.open != nil {
		return d.open, nil
	}
	w, err := warehouse.Open(ctx, d.dsn)
	if err != nil {
		return nil, err
	}
	d.open = w
	return w, nil
}

func (d *door) close() error {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	if d.open == nil {
		return nil
	}
	w := d.open
	d.open = nil
	return w.Close()
}

// Position is the warehouse's.
func (d *door) Position(ctx context.Context) (history.Position, error) {
	w, err := d.warehouse(ctx)
	if err != nil {
		return history.Position{}, err
	}
	return w.Position(ctx)
}

// Write is the warehouse's.
func (d *door) Write(ctx context.Context, b history.Batch) error {
	w, err := d.warehouse(ctx)
	if err != nil {
		return err
	}
	return w.Write(ctx, b)
}

// Repair is the warehouse's.
func (d *door) Repair(ctx context.Context, parts iter.Seq[history.Batch]) error {
	w, err := d.warehouse(ctx)
	if err != nil {
		return err
	}
	return w.Repair(ctx, parts)
}

// Revert is the warehouse's.
func (d *door) Revert(ctx context.Context, to resource.Revision) error {
	w, err := d.warehouse(ctx)
	if err != nil {
		return err
	}
	return w.Revert(ctx, to)
}

// Read is the warehouse's.
func (d *door) Read(ctx context.Context, of history.Batch) (history.Batch, error) {
	w, err := d.warehouse(ctx)
	if err != nil {
		return history.Batch{}, err
	}
	return w.Read(ctx, of)
}

// LastCounted is the warehouse's.
func (d *door) LastCounted(ctx context.Context) ([]history.Slice, error) {
	w, err := d.warehouse(ctx)
	if err != nil {
		return nil, err
	}
	return w.LastCounted(ctx)
}

// recordHeartbeats is the warehouse's.
func (d *door) recordHeartbeats(ctx context.Context, samples []history.Heartbeat) error {
	w, err := d.warehouse(ctx)
	if err != nil {
		return err
	}
	return w.RecordHeartbeats(ctx, samples)
}
