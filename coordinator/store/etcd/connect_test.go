package etcd_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/etcd"
	"github.com/musterd/muster/test/etcdcluster"
)

// TestConnectRefusalsByField: an error that waiting will not mend is returned
// at once, and names the field of the configuration and its value.
func TestConnectRefusalsByField(t *testing.T) {
	t.Parallel()
	c := etcdcluster.Start(t, etcdcluster.Options{Members: 1, TLS: true, Auth: true})
	plain := etcdcluster.Start(t, etcdcluster.Options{Members: 1})
	admin := c.Admin()
	if _, err := admin.UserAdd(within(t), "guest", etcdcluster.Password); err != nil {
		t.Fatal(err)
	}
	other := etcdcluster.NewAuthority(t, filepath.Join(t.TempDir(), "other"))
	otherCert, otherKey := other.Issue(t, etcdcluster.Leaf{Name: "stranger"})
	oldCert, oldKey := c.Authority().Issue(t, etcdcluster.Leaf{Name: "old", NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)})
	earlyCert, earlyKey := c.Authority().Issue(t, etcdcluster.Leaf{Name: "early", NotBefore: time.Now().Add(time.Hour), NotAfter: time.Now().Add(2 * time.Hour)})
	strangeCert, strangeKey := c.Authority().Issue(t, etcdcluster.Leaf{Name: "stranger"})
	text := filepath.Join(t.TempDir(), "notes.txt")
	write(t, text, "no certificate")
	good := asMuster(to(c))
	good.RequestTimeout = patience // a slow answer is none that waiting would not mend
	with := func(change func(*etcd.Config)) etcd.Config { o := good; change(&o); return o }
	cases := map[string]struct {
		config etcd.Config
		want   []string
	}{
		"an authority that did not sign":           {with(func(o *etcd.Config) { o.TLS.CAFile = other.File }), []string{"etcdTLS.caFile", other.File, c.Endpoint(0)}},
		"the host's trust for a private authority": {with(func(o *etcd.Config) { o.TLS.CAFile = "" }), []string{"etcdTLS.caFile", "what this host trusts", c.Endpoint(0)}},
		"an authority that is not there":           {with(func(o *etcd.Config) { o.TLS.CAFile = "/nowhere/ca.pem" }), []string{"etcdTLS.caFile", "/nowhere/ca.pem"}},
		"an authority that is no certificate":      {with(func(o *etcd.Config) { o.TLS.CAFile = text }), []string{"etcdTLS.caFile", text}},
		"no certificate of its own":                {with(func(o *etcd.Config) { o.TLS.CertFile, o.TLS.KeyFile = "", "" }), []string{"etcdTLS.certFile", "not set"}},
		"a certificate of another authority":       {with(func(o *etcd.Config) { o.TLS.CertFile, o.TLS.KeyFile = otherCert, otherKey }), []string{"etcdTLS.certFile", otherCert}},
		"a certificate that has expired":           {with(func(o *etcd.Config) { o.TLS.CertFile, o.TLS.KeyFile = oldCert, oldKey }), []string{"etcdTLS.certFile", oldCert, "expired"}},
		"a certificate of tomorrow":                {with(func(o *etcd.Config) { o.TLS.CertFile, o.TLS.KeyFile = earlyCert, earlyKey }), []string{"etcdTLS.certFile", earlyCert, "not valid before"}},
		"a key of another certificate":             {with(func(o *etcd.Config) { o.TLS.KeyFile = otherKey }), []string{"etcdTLS.keyFile", otherKey}},
		"a certificate without its key":            {with(func(o *etcd.Config) { o.TLS.KeyFile = "" }), []string{"etcdTLS.keyFile", "not set"}},
		"a name that is not the servers'":          {with(func(o *etcd.Config) { o.TLS.ServerName = "etcd.example.org" }), []string{"etcdTLS.serverName", "etcd.example.org"}},
		"a plain endpoint of a server with TLS": {
			with(func(o *etcd.Config) { o.Endpoints = []string{strings.Replace(c.Endpoint(0), "https", "http", 1)} }),
			[]string{"etcdEndpoints[0]", c.Endpoint(0)},
		},
		"an https endpoint of a plain server": {
			with(func(o *etcd.Config) { o.Endpoints = []string{strings.Replace(plain.Endpoint(0), "http", "https", 1)} }),
			[]string{"etcdEndpoints[0]", plain.Endpoint(0)},
		},
		"a wrong password": {with(func(o *etcd.Config) { o.Password = "guessed" }), []string{"etcdPasswordFile", etcdcluster.MusterUser, good.PasswordFile}},
		"an unknown user":  {with(func(o *etcd.Config) { o.Username = "nobody" }), []string{"nobody"}},
		"no user, and a certificate that names none": {
			with(func(o *etcd.Config) {
				o.Username, o.Password, o.TLS.CertFile, o.TLS.KeyFile = "", "", strangeCert, strangeKey
			}),
			[]string{"etcdUsername", "/registry/"},
		},
		"a user without a role": {with(func(o *etcd.Config) { o.Username = "guest" }), []string{"etcdUsername", "guest", "/registry/", "grant-permission"}},
	}
	for name, k := range cases {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			s, err := etcd.Connect(ctx, k.config)
			if err == nil {
				_ = s.Close()
				t.Fatal("connected")
			}
			if ctx.Err() != nil {
				t.Errorf("it waited for what cannot come: %v", err)
			}
			for _, part := range k.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("got %v\nwant it to name %s", err, part)
				}
			}
		})
	}
}

// TestConnectWaits for an etcd that is started later, and logs that meanwhile.
func TestConnectWaits(t *testing.T) {
	t.Parallel()
	c := etcdcluster.Start(t, etcdcluster.Options{Members: 1})
	c.Kill(0)
	var log journal
	config := to(c)
	config.Logger = log.logger()
	type result struct {
		s   *etcd.Store
		err error
	}
	connected := make(chan result, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	go func() {
		s, err := etcd.Connect(ctx, config)
		connected <- result{s, err}
	}()
	log.await(t, "etcd_not_reachable")
	select {
	case r := <-connected:
		t.Fatalf("connected to nobody: %v", r.err)
	default:
	}
	c.Restart(0)
	r := <-connected
	if r.err != nil {
		t.Fatal(r.err)
	}
	insist(t, r.s, "late")
	if err := r.s.Close(); err != nil {
		t.Error(err)
	}
}

// TestConnectToOneOfThree: members that are down, or misconfigured, do not keep
// a client from the others.
func TestConnectToOneOfThree(t *testing.T) {
	t.Parallel()
	c := etcdcluster.Start(t, etcdcluster.Options{})
	c.Kill(0)
	config := to(c)
	config.Endpoints[1] = "http://127.0.0.1:1"
	s := connect(t, config, 2048)
	insist(t, s, "through the third")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestMetrics: the outcomes are counted by kind.
func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	s, err := etcd.Embed(within(t), etcd.EmbedConfig{Dir: filepath.Join(t.TempDir(), "etcd"), UnsafeNoFsync: true, Metrics: registry})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	insist(t, s, "1")
	if err := s.KeepAlive(within(t), 4711); !errors.Is(err, record.ErrLeaseGone) {
		t.Errorf("keep alive: %v", err)
	}
	_, _, rev, err := s.Get(within(t), "/registry/k")
	if err != nil {
		t.Fatal(err)
	}
	value := func(name, label string) float64 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() != name || label != "" && (len(m.GetLabel()) != 1 || m.GetLabel()[0].GetValue() != label) {
					continue
				}
				switch {
				case m.GetHistogram() != nil:
					return float64(m.GetHistogram().GetSampleCount())
				case m.GetCounter() != nil:
					return m.GetCounter().GetValue()
				}
				return m.GetGauge().GetValue()
			}
		}
		return -1
	}
	await(t, "the monitor's first look", func() bool { return value("muster_store_db_bytes", "") > 0 })
	for name, want := range map[[2]string]float64{
		{"muster_store_revision", ""}:               float64(rev),
		{"muster_store_txn_seconds", ""}:            1,
		{"muster_store_errors_total", "lease_gone"}: 1,
		{"muster_store_alarm", "NOSPACE"}:           0,
		{"muster_store_members", ""}:                1,
		{"muster_store_went_back_total", ""}:        0,
	} {
		if got := value(name[0], name[1]); got != want {
			t.Errorf("%v is %v, want %v", name, got, want)
		}
	}
}

// TestEmbeddedMakesRoom: nobody else can reach the embedded server, so it gets
// out of its alarm by itself.
func TestEmbeddedMakesRoom(t *testing.T) {
	t.Parallel()
	var log journal
	s, err := etcd.Embed(within(t), etcd.EmbedConfig{
		Dir: filepath.Join(t.TempDir(), "etcd"), UnsafeNoFsync: true, QuotaBytes: 16 << 20, Logger: log.logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	filler := strings.Repeat("x", 1<<20)
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	for err = nil; err == nil; { // one key, written again and again
		err = put(ctx, s, filler)
	}
	if !errors.Is(err, record.ErrNoSpace) || errors.Is(err, record.ErrUnknownOutcome) {
		t.Fatalf("full: %v", err)
	}
	log.await(t, "store_out_of_space")
	await(t, "room", func() bool { return put(ctx, s, "small") == nil })
	log.await(t, "store_alarm_ended")
}

// TestEmbeddedDiskFull: a process whose disk is full dies and reports the
// reason; with room again, everything that was acknowledged is there.
func TestEmbeddedDiskFull(t *testing.T) {
	t.Parallel()
	mount := smallDisk(t, 288<<20) // etcd sets aside 64 MiB for each of two or three logs
	dir := filepath.Join(mount, "etcd")
	acknowledged, said := childUntilItDies(t, dir)
	if !strings.Contains(said, "no space left on device") {
		t.Errorf("it died without saying why:\n%.4000s", said)
	}
	if acknowledged == 0 {
		t.Fatal("nothing was ever acknowledged")
	}
	if err := os.Remove(filepath.Join(mount, ballast)); err != nil {
		t.Fatal(err)
	}
	s := openEmbedded(t, dir, false)
	defer func() { _ = s.Close() }()
	kvs, _, err := s.Range(within(t), "/registry/tx/", store.RangeOptions{})
	if err != nil || len(kvs) < acknowledged {
		t.Errorf("%d writes were acknowledged and %d are there, %v", acknowledged, len(kvs), err)
	}
}
