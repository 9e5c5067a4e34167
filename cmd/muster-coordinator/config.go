package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/configfile"
	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/count"
	"github.com/musterd/muster/coordinator/daemon"
	"github.com/musterd/muster/coordinator/enroll"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/rendezvous"
	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
)

// config is the config file; systemd/muster-coordinator.yaml documents every
// key.
type config struct {
	Cluster        string    `json:"cluster"`
	ID             string    `json:"id"`
	DataDir        string    `json:"dataDir"`
	TLS            tlsConfig `json:"tls"`
	Advertise      string    `json:"advertise"`
	TokenFile      string    `json:"tokenFile"`
	AdminTokenFile string    `json:"adminTokenFile"`
	RESTListen     string    `json:"restListen"`
	GRPCListen     string    `json:"grpcListen"`
	ListenConfig
	OIDC oidcConfig `json:"oidc"`
	EtcdConfig
	LeaseTTL          configfile.Duration        `json:"leaseTTL"`
	Gossip            gossipConfig               `json:"gossip"`
	Namespaces        map[string]namespaceConfig `json:"namespaces"`
	RequireNamespaces bool                       `json:"requireNamespaces"`
	Quota             quotaConfig                `json:"quota"`
	Limits            limitsConfig               `json:"limits"`
	Admission         admissionConfig            `json:"admission"`
	Decisions         decisionsConfig            `json:"decisions"`
	Audit             auditConfig                `json:"audit"`
	History           historyConfig              `json:"history"`
	DeviceLost        string                     `json:"deviceLost"`
	Unsatisfiable     string                     `json:"unsatisfiable"`
	PlacementPolicy   string                     `json:"placementPolicy"`
	PreemptionPolicy  string                     `json:"preemptionPolicy"`
	StartsWork        bool                       `json:"startsWork"`
	WorkPorts         string                     `json:"workPorts"`
	Log               logConfig                  `json:"log"`
}

type gossipConfig struct {
	Join             []string `json:"join"`
	SerfBind         string   `json:"serfBind"`
	SerfRPC          string   `json:"serfRPC"`
	SerfRPCTokenFile string   `json:"serfRPCTokenFile"`
	CapacityBind     string   `json:"capacityBind"`
}

type namespaceConfig struct {
	Tenant    string                              `json:"tenant"`
	Quota     map[resource.Name]configfile.Scalar `json:"quota"`
	Groups    map[string]string                   `json:"groups"`
	Admission string                              `json:"admission"`
}

type limitsConfig struct {
	AllocationsPerNamespace int               `json:"allocationsPerNamespace"`
	Documents               configfile.Scalar `json:"documents"`
	RequestsPerMinute       int               `json:"requestsPerMinute"`
}

// maxPerNamespace bounds limits.allocationsPerNamespace: more has not been
// tried.
const maxPerNamespace = 1_000_000

// minDocuments and maxDocuments bound limits.documents, in bytes.
const minDocuments, maxDocuments = 1 << 20, 1 << 40

func (l limitsConfig) check() (documents count.Share, err error) {
	if n := l.AllocationsPerNamespace; n < 1 || n > maxPerNamespace {
		return 0, fmt.Errorf("limits.allocationsPerNamespace: %d is outside 1..%d", n, maxPerNamespace)
	}
	if n := l.RequestsPerMinute; n < 0 || n > gate.MaxRequests {
		return 0, fmt.Errorf("limits.requestsPerMinute: %d is outside 0..%d; 0 is no limit", n, gate.MaxRequests)
	}
	size, err := resource.ParseQuantity(string(l.Documents), 1)
	switch {
	case err != nil:
		return 0, fmt.Errorf("limits.documents: %w", err)
	case size < minDocuments || size > maxDocuments:
		return 0, fmt.Errorf("limits.documents: %s is outside 1Mi..1Ti", l.Documents)
	}
	return count.Share(size), nil
}

type admissionConfig struct {
	Growth string `json:"growth"`
}

// The policies of admission.growth.
const (
	growthAllow   = "allow"
	growthApprove = "approve"
)

// The policies of deviceLost.
const (
	deviceLostKeep  = "keep"
	deviceLostEvict = "evict"
)

// checkDeviceLost reports whether a unit that holds a lost device is evicted.
func (c config) checkDeviceLost() (evict bool, err error) {
	switch c.DeviceLost {
	case deviceLostKeep:
	case deviceLostEvict:
		return true, nil
	default:
		err = fmt.Errorf("deviceLost: %q: want %s or %s", c.DeviceLost, deviceLostKeep, deviceLostEvict)
	}
	return false, err
}

// The policies of unsatisfiable.
const (
	unsatisfiableWait   = "wait"
	unsatisfiableReject = "reject"
)

// checkUnsatisfiable reports whether new work that can never run is refused.
func (c config) checkUnsatisfiable() (reject bool, err error) {
	switch c.Unsatisfiable {
	case unsatisfiableWait:
	case unsatisfiableReject:
		return true, nil
	default:
		err = fmt.Errorf("unsatisfiable: %q: want %s or %s", c.Unsatisfiable, unsatisfiableWait, unsatisfiableReject)
	}
	return false, err
}

// checkPlacement reports a policy that does not exist.
func (c config) checkPlacement() error {
	if names := []string{api.PreemptLowerPriority, api.PreemptOwnQuota, api.PreemptNever}; !slices.Contains(names, c.PreemptionPolicy) {
		return fmt.Errorf("preemptionPolicy: %q: want %s or %s", c.PreemptionPolicy, strings.Join(names[:len(names)-1], ", "), names[len(names)-1])
	}
	if names := place.Policies(); !slices.Contains(names, c.PlacementPolicy) {
		return fmt.Errorf("placementPolicy: %q: want %s or %s", c.PlacementPolicy, strings.Join(names[:len(names)-1], ", "), names[len(names)-1])
	}
	return nil
}

// check reports whether growth waits for an operator: with TLS by default, since hosts may
// then be on any network.
func (a admissionConfig) check(secure bool) (approve bool, err error) {
	switch a.Growth {
	case "":
		return secure, nil
	case growthAllow:
	case growthApprove:
		return true, nil
	default:
		err = fmt.Errorf("admission.growth: %q: want %s or %s", a.Growth, growthAllow, growthApprove)
	}
	return false, err
}

type quotaConfig struct {
	Settle            bool                `json:"settle"`
	EvictAtHard       bool                `json:"evictAtHard"`
	IgnoreOverdrawn   bool                `json:"ignoreOverdrawn"`
	FewestVictims     bool                `json:"fewestVictims"`
	PinnedWithinQuota bool                `json:"pinnedWithinQuota"`
	MinRunTime        configfile.Duration `json:"minRunTime"`
}

// maxMinRunTime bounds quota.minRunTime: quota that cannot be reclaimed for longer is
// no borrowing.
const maxMinRunTime = 7 * 24 * time.Hour

type logConfig struct {
	Level  string `json:"level"`
	Format string `json:"format"`
}

// defaultSerfRPC is beside the port of an agent on the same host.
const defaultSerfRPC = "127.0.0.1:7374"

// defaults is the configuration without a file or flags.
func defaults() config {
	return config{
		Cluster: "muster", DataDir: "/var/lib/muster-coordinator",
		RESTListen: "127.0.0.1:8470", GRPCListen: "127.0.0.1:8471", LeaseTTL: configfile.DurationOf(5 * time.Second),
		OIDC:       defaultOIDC(),
		EtcdConfig: EtcdConfig{EtcdDialTimeout: configfile.DurationOf(2 * time.Second)},
		Gossip:     gossipConfig{SerfBind: "127.0.0.1:7948", SerfRPC: defaultSerfRPC, CapacityBind: "127.0.0.1:7949"},
		Limits:     limitsConfig{AllocationsPerNamespace: coordinator.DefaultNamespaceAllocations, Documents: "512Mi", RequestsPerMinute: gate.DefaultRequests},
		TLS:        tlsConfig{CertTTL: configfile.DurationOf(enroll.DefaultTTL)},
		DeviceLost: deviceLostKeep, Unsatisfiable: unsatisfiableWait, PlacementPolicy: place.NameFragmentation, WorkPorts: rendezvous.Default.String(), PreemptionPolicy: coordinator.DefaultPreemptionPolicy,
		Decisions: decisionsConfig{Files: 16, MaxSize: "64Mi"},
		Audit:     auditConfig{Files: 16, MaxSize: "64Mi"},
		History:   historyConfig{SpoolWait: configfile.DurationOf(time.Hour), Retention: defaultRetention()},
		Log:       logConfig{Level: "info", Format: "text"},
	}
}

// check validates a configuration, reads the token files and returns the settings that the
// daemon runs with. The error joins one entry per wrong field, each with the
// field and its value.
func (c config) check(hostname func() (string, error)) (daemon.Config, slog.Level, error) {
	var errs []error
	keep := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	if c.ID == "" {
		name, err := hostname()
		keep(err)
		c.ID = name
	}
	keep(configfile.CheckName("id", c.ID))
	keep(configfile.CheckName("cluster", c.Cluster))
	if !filepath.IsAbs(c.DataDir) && len(c.EtcdEndpoints) == 0 {
		keep(fmt.Errorf("dataDir: %q: want an absolute path", c.DataDir))
	}
	checkListen, checkRemote := configfile.CheckListen, configfile.CheckRemote
	if c.TLS.Enabled {
		checkListen, checkRemote = configfile.CheckListenAnywhere, configfile.CheckRemoteAnywhere
	}
	keep(checkListen("restListen", c.RESTListen))
	keep(checkListen("grpcListen", c.GRPCListen))
	metrics, err := c.checkListeners(c.TLS.Enabled, checkListen)
	keep(err)
	keep(checkListen("gossip.serfBind", c.Gossip.SerfBind))
	keep(checkListen("gossip.capacityBind", c.Gossip.CapacityBind))
	for i, a := range c.Gossip.Join {
		keep(checkRemote(fmt.Sprintf("gossip.join[%d]", i), a))
	}
	keep(configfile.CheckAdvertise("advertise", c.Advertise))
	leaseTTL, err := c.LeaseTTL.Check("leaseTTL", time.Second, time.Minute)
	keep(err)
	external, err := c.EtcdConfig.check(leaseTTL)
	keep(err)
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		keep(fmt.Errorf("log.level: %q: want debug, info, warn or error", c.Log.Level))
	}
	if !slices.Contains([]string{"text", "json"}, c.Log.Format) {
		keep(fmt.Errorf("log.format: %q: want text or json", c.Log.Format))
	}
	options, err := c.Quota.check()
	keep(err)
	namespaces, err := checkNamespaces(c.Namespaces)
	keep(err)
	documents, err := c.Limits.check()
	keep(err)
	approve, err := c.Admission.check(c.TLS.Enabled)
	keep(err)
	evictLost, err := c.checkDeviceLost()
	keep(err)
	reject, err := c.checkUnsatisfiable()
	keep(err)
	keep(c.checkPlacement())
	account, err := c.Decisions.check()
	keep(err)
	refused, err := c.Audit.check()
	keep(err)
	kept, err := c.History.check()
	keep(err)
	secure, err := c.checkTLS()
	keep(err)
	persons, err := c.OIDC.check()
	keep(err)
	var cluster rpcauth.Token
	if !c.TLS.Enabled {
		cluster, err = token("tokenFile", c.TokenFile, "agents and coordinators")
		keep(err)
	}
	serfRPC, err := c.checkSerfRPC(cluster)
	keep(err)
	admin, err := token("adminTokenFile", c.AdminTokenFile, "operators and tenants")
	keep(err)
	keep(c.checkTokensDiffer(admin, cluster, serfRPC, metrics))
	ports, err := rendezvous.ParseRange(c.WorkPorts)
	if err != nil {
		keep(fmt.Errorf("workPorts: %w", err))
	}
	return daemon.Config{
		ID: c.ID, Cluster: c.Cluster, DataDir: c.DataDir, Etcd: external, RESTListen: c.RESTListen, GRPCListen: c.GRPCListen,
		MetricsListen: c.MetricsListen, EnrollListen: c.EnrollListen, MetricsToken: metrics, OIDC: persons,
		SerfBind: c.Gossip.SerfBind, CapacityBind: c.Gossip.CapacityBind, Join: c.Gossip.Join, SerfRPC: serfRPC,
		TLS: secure, Advertise: c.Advertise, ClusterToken: cluster, AdminToken: admin, Namespaces: namespaces, RequireNamespaces: c.RequireNamespaces, Quota: options, NamespaceAllocations: c.Limits.AllocationsPerNamespace, Documents: documents, RequestsPerMinute: c.Limits.RequestsPerMinute, ApproveGrowth: approve, EvictOnDeviceLost: evictLost, RejectUnsatisfiable: reject, PlacementPolicy: c.PlacementPolicy, PreemptionPolicy: c.PreemptionPolicy, StartsWork: c.StartsWork, Ports: ports, LeaseTTL: leaseTTL, Decisions: account, Audit: refused, History: kept,
	}, level, errors.Join(errs...)
}

// checkSerfRPC returns the port of the stock serf command line. Its token is
// gossip.serfRPCTokenFile's, without TLS else the cluster's, and with TLS a token that
// serfToken makes: it is empty here.
func (c config) checkSerfRPC(cluster rpcauth.Token) (gossip.RPC, error) {
	g := c.Gossip
	if g.SerfRPC == "" {
		return gossip.RPC{}, nil
	}
	r := gossip.RPC{Addr: g.SerfRPC, Token: cluster.Secret(), Optional: g.SerfRPC == defaultSerfRPC}
	if err := configfile.CheckListen("gossip.serfRPC", g.SerfRPC); err != nil {
		return r, err
	}
	if g.SerfRPCTokenFile != "" {
		t, err := rpcauth.ReadFile(g.SerfRPCTokenFile)
		if err != nil {
			return r, fmt.Errorf("gossip.serfRPCTokenFile: %w", err)
		}
		r.Token = t.Secret()
	}
	return r, nil
}

// checkTokensDiffer refuses an administrator's token that others have too: every
// agent holds tokenFile's, and users of serf hold gossip.serfRPCTokenFile's.
func (c config) checkTokensDiffer(admin, cluster rpcauth.Token, serfRPC gossip.RPC, metrics rpcauth.Token) error {
	const next = "; write another one: head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \\n' > %s"
	switch {
	case admin.IsZero():
		return nil
	case admin == cluster:
		return fmt.Errorf("adminTokenFile: %s holds the same token as tokenFile %s, which every agent has: each agent would be an administrator"+next, c.AdminTokenFile, c.TokenFile, c.AdminTokenFile)
	case admin == metrics:
		return fmt.Errorf("adminTokenFile: %s holds the same token as metricsTokenFile %s: each scraper would be an administrator"+next, c.AdminTokenFile, c.MetricsTokenFile, c.AdminTokenFile)
	case c.Gossip.SerfRPCTokenFile != "" && admin.Secret() == serfRPC.Token:
		return fmt.Errorf("adminTokenFile: %s holds the same token as gossip.serfRPCTokenFile %s: each user of serf would be an administrator"+next, c.AdminTokenFile, c.Gossip.SerfRPCTokenFile, c.AdminTokenFile)
	}
	return nil
}

// serfToken is the token of the serf RPC port in the data folder; it makes both
// if need be.
func serfToken(dataDir string) (string, error) {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return "", fmt.Errorf("dataDir: %w", err)
	}
	t, err := rpcauth.ReadOrGenerate(filepath.Join(dataDir, "serf-rpc-token"))
	return t.Secret(), err
}

func token(field, path, whose string) (rpcauth.Token, error) {
	if path == "" {
		return rpcauth.Token{}, fmt.Errorf("%s: not set; it holds the token of %s", field, whose)
	}
	t, err := rpcauth.ReadFile(path)
	if err != nil {
		return rpcauth.Token{}, fmt.Errorf("%s: %w", field, err)
	}
	return t, nil
}

func (q quotaConfig) check() (quota.Options, error) {
	minRunTime, err := q.MinRunTime.Check("quota.minRunTime", 0, maxMinRunTime)
	return quota.Options{
		Settle: q.Settle, EvictAtHard: q.EvictAtHard, IgnoreOverdrawn: q.IgnoreOverdrawn, FewestVictims: q.FewestVictims,
		PinnedWithinQuota: q.PinnedWithinQuota, MinRunTime: minRunTime,
	}, err
}

// checkNamespaces turns the limits into base units.
func checkNamespaces(in map[string]namespaceConfig) (map[string]lead.Namespace, error) {
	out := make(map[string]lead.Namespace, len(in))
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(in)) {
		field := "namespaces." + name
		if !api.IsLabel(name) {
			errs = append(errs, fmt.Errorf("%s: want 1 to 63 of a-z, 0-9 and '-', with a letter or digit at both ends", field))
		}
		n := in[name]
		ns := lead.Namespace{Tenant: resource.TenantID(n.Tenant)}
		if n.Tenant != "" && !api.IsLabel(n.Tenant) {
			errs = append(errs, fmt.Errorf("%s.tenant: %q: want 1 to 63 of a-z, 0-9 and '-', with a letter or digit at both ends", field, n.Tenant))
		}
		switch n.Admission {
		case "", "reject", "queue":
			ns.Admission = n.Admission
		default:
			errs = append(errs, fmt.Errorf("%s.admission: %q: want reject or queue", field, n.Admission))
		}
		errs = append(errs, checkGroups(field+".groups", n.Groups))
		ns.Groups = n.Groups
		for _, r := range slices.Sorted(maps.Keys(n.Quota)) {
			amount, err := api.ParseAmount(r, string(n.Quota[r]))
			if err != nil {
				errs = append(errs, fmt.Errorf("%s.quota: %s: %w", field, r, err))
				continue
			}
			if ns.Hard == nil {
				ns.Hard = resource.Vector{}
			}
			ns.Hard[r] = amount
		}
		out[name] = ns
	}
	return out, errors.Join(errs...)
}

// checkGroups wants the names of trees and of their leaves. Whether there are
// such is for the coordinator to see: trees come and go.
func checkGroups(field string, groups map[string]string) error {
	var errs []error
	for _, tree := range slices.Sorted(maps.Keys(groups)) {
		if !api.IsTreeName(tree) {
			errs = append(errs, fmt.Errorf("%s: %q: want a tree's name, 1 to 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends", field, tree))
		}
		if err := api.CheckGroup(groups[tree]); err != nil {
			errs = append(errs, fmt.Errorf("%s.%s: %w", field, tree, err))
		}
	}
	return errors.Join(errs...)
}
