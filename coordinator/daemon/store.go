package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/coordinator/audit"
	"github.com/musterd/muster/coordinator/era"
	"github.com/musterd/muster/coordinator/raise"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/etcd"
	"github.com/musterd/muster/level"
)

// openStore opens the external store, or the embedded one below DataDir.
func openStore(ctx context.Context, c Config, registry prometheus.Registerer) (store.Store, error) {
	s, err := openEtcd(ctx, c, registry)
	if err != nil {
		return nil, err // not a nil *etcd.Store in an interface that is not nil
	}
	return s, nil
}

func openEtcd(ctx context.Context, c Config, registry prometheus.Registerer) (*etcd.Store, error) {
	if len(c.Etcd.Endpoints) > 0 {
		external := c.Etcd
		external.Logger, external.Metrics = c.Logger, registry
		return etcd.Connect(ctx, external)
	}
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("dataDir: %w", err)
	}
	return etcd.Embed(ctx, etcd.EmbedConfig{Dir: filepath.Join(c.DataDir, "etcd"), Logger: c.Logger, Metrics: registry})
}

// comparePast compares this coordinator's knowledge of the past with the store, before
// the first write.
func (d *Daemon) comparePast(ctx context.Context) (err error) {
	if d.config.DataDir == "" {
		return nil
	}
	if err := os.MkdirAll(d.config.DataDir, 0o700); err != nil {
		d.log.Warn("store_past_not_kept", "error", err, "next", "make dataDir writable: this coordinator cannot notice a store that was restored while it was stopped")
		return nil
	}
	if d.era, err = era.Open(d.config.DataDir, d.config.Cluster, d.config.ID, d.log); err != nil {
		return err
	}
	return d.era.Start(ctx, d.store)
}

// claimStore binds the store to this coordinator's cluster, and refuses the store of
// another. A store that is full and has no owner yet is used without one.
func (d *Daemon) claimStore(ctx context.Context) error {
	fresh, err := store.Claim(ctx, d.store, d.config.Cluster, level.Newest)
	where := "etcdEndpoints"
	if len(d.config.Etcd.Endpoints) == 0 {
		where = "dataDir " + d.config.DataDir
	}
	switch {
	case errors.Is(err, record.ErrNoSpace):
		d.log.Warn("store_not_claimed", "cluster", d.config.Cluster, "error", err, "next", "free space in etcd; the next start claims the store")
	case err != nil:
		return fmt.Errorf("%s: %w", where, err)
	case fresh:
		d.log.Info("store_claimed", "cluster", d.config.Cluster)
	}
	return nil
}

// levels is the door of the feature level.
func (d *Daemon) levels() service.FeatureLevels {
	return &raise.Door{Cluster: d.config.Cluster, Store: d.store, Noted: audit.Noted(d.store), Known: level.Newest, Features: level.Features()}
}
