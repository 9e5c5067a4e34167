package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/deviceplugin"
	"github.com/musterd/muster/agent/pressure"
	"github.com/musterd/muster/agent/users"
	"github.com/musterd/muster/cmd/configfile"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
	"github.com/musterd/muster/rpcauth"
)

// config is the config file; systemd/muster-agent.yaml documents every key.
type config struct {
	Cluster        string `json:"cluster"`
	NodeID         string `json:"nodeID"`
	DataDir        string `json:"dataDir"`
	AssignmentsDir string `json:"assignmentsDir"`
	// AssignmentsMode is in octal digits.
	AssignmentsMode configfile.Scalar `json:"assignmentsMode"`
	TLS             tlsConfig         `json:"tls"`
	// BootstrapTokenFile is read while the node has no certificate that is good.
	BootstrapTokenFile string   `json:"bootstrapTokenFile"`
	TokenFile          string   `json:"tokenFile"`
	Listen             string   `json:"listen"`
	Advertise          string   `json:"advertise"`
	MetricsListen      string   `json:"metricsListen"`
	MetricsTokenFile   string   `json:"metricsTokenFile"`
	Coordinators       []string `json:"coordinators"`
	// Enrollment are the addresses where a node without a certificate enrols; none:
	// those of Coordinators.
	Enrollment []string          `json:"enrollment"`
	Labels     map[string]string `json:"labels"`
	Reserved   reservedConfig    `json:"reserved"`
	// Pods is the most members at once, 0 for no bound.
	Pods int `json:"pods"`
	// Resources are further resources that the node declares: amounts by name, with a
	// unit behind the amount where there is one. The unit "bytes" makes the kind bytes.
	Resources       map[string]configfile.Scalar `json:"resources"`
	Discovery       discoveryConfig              `json:"discovery"`
	Gossip          gossipConfig                 `json:"gossip"`
	Orphans         orphansConfig                `json:"orphans"`
	Heartbeat       configfile.Duration          `json:"heartbeat"`
	AssumeDeadAfter configfile.Duration          `json:"assumeDeadAfter"`
	MemoryPressure  memoryConfig                 `json:"memoryPressure"`
	Kubelet         kubeletConfig                `json:"kubelet"`
	Work            workConfig                   `json:"work"`
	Attach          attachConfig                 `json:"attach"`
	Log             logConfig                    `json:"log"`
}

type tlsConfig struct {
	Enabled bool `json:"enabled"`
}

type reservedConfig struct {
	CPUs   string            `json:"cpus"`
	Memory configfile.Scalar `json:"memory"`
}

// maxPods is the most members at once that can be configured.
const maxPods = 1_000_000

// counts are the counted resources of the host but its storage, ascending by name.
func (c config) counts() ([]grant.Count, error) {
	var errs []error
	var counts []grant.Count
	if c.Pods < 0 || c.Pods > maxPods {
		errs = append(errs, fmt.Errorf("pods: %d is outside 0..%d; 0 sets no bound", c.Pods, maxPods))
	} else if c.Pods > 0 {
		counts = append(counts, grant.Count{Name: resource.Pods, Amount: int64(c.Pods)})
	}
	if most := resource.MaxCounts - 2; len(c.Resources) > most {
		errs = append(errs, fmt.Errorf("resources: %d names, a node declares %d at most", len(c.Resources), most))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Resources)) {
		number, unit, _ := strings.Cut(string(c.Resources[name]), " ")
		amount, err := resource.ParseQuantity(number, 1)
		d := grant.Count{Name: resource.Name(name), Amount: amount, Kind: grant.KindCount, Unit: unit}
		if unit == grant.KindBytes {
			d.Kind = grant.KindBytes
		}
		switch {
		case !resource.IsExtended(d.Name):
			err = fmt.Errorf("want DOMAIN/NAME, outside the domains nvidia.com, muster.io, kubernetes.io and k8s.io")
		case err == nil && amount == 0:
			continue
		case err == nil:
			err = d.Check()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("resources.%.80s: %.80q: %w", name, c.Resources[name], err))
			continue
		}
		counts = append(counts, d)
	}
	slices.SortFunc(counts, func(a, b grant.Count) int { return cmp.Compare(a.Name, b.Name) })
	return counts, errors.Join(errs...)
}

type discoveryConfig struct {
	SysfsRoot   string `json:"sysfsRoot"`
	NVMLLibrary string `json:"nvmlLibrary"`
	// Rediscover is the time between two looks for cards that were added.
	Rediscover configfile.Duration `json:"rediscover"`
	// Timeout is the time for all calls of the discovery at the start together.
	Timeout configfile.Duration `json:"timeout"`
	// HangAfter is the time after which a call that has not returned is reported.
	HangAfter configfile.Duration `json:"hangAfter"`
	// Retry is the time between two looks for a driver that is absent.
	Retry configfile.Duration `json:"retry"`
}

type orphansConfig struct {
	Enabled bool     `json:"enabled"`
	Ignore  []string `json:"ignore"`
}

// kubeletConfig is the devices of the kubelet; see deviceplugin.Config.
type kubeletConfig struct {
	Pool         []string                `json:"pool"`
	Shares       map[string]int          `json:"shares"`
	Resource     string                  `json:"resource"`
	Strategies   []deviceplugin.Strategy `json:"strategies"`
	CDIKind      string                  `json:"cdiKind"`
	Sockets      string                  `json:"sockets"`
	PodResources string                  `json:"podResources"`
}

// check returns the device plugin's configuration, nil without a pool. An error has
// one line for each wrong field.
func (c kubeletConfig) check() (*deviceplugin.Config, error) {
	for field, value := range map[string]string{"resource": c.Resource, "cdiKind": c.CDIKind, "sockets": c.Sockets, "podResources": c.PodResources} {
		if value == "" {
			return nil, fmt.Errorf("kubelet.%s: empty; remove the key to have its default", field)
		}
	}
	checked, err := deviceplugin.Config{
		Pool: c.Pool, Shares: c.Shares, Resource: c.Resource, Strategies: c.Strategies, CDIKind: c.CDIKind, Sockets: c.Sockets, PodResources: c.PodResources,
	}.Checked()
	if err != nil {
		return nil, fmt.Errorf("kubelet.%s", strings.ReplaceAll(err.Error(), "\n", "\nkubelet."))
	}
	if len(c.Pool) == 0 {
		return nil, nil
	}
	return &checked, nil
}

type gossipConfig struct {
	Enabled          bool     `json:"enabled"`
	Join             []string `json:"join"`
	JoinCapacity     []string `json:"joinCapacity"`
	SerfBind         string   `json:"serfBind"`
	SerfRPC          string   `json:"serfRPC"`
	SerfRPCTokenFile string   `json:"serfRPCTokenFile"`
	CapacityBind     string   `json:"capacityBind"`
	Cell             string   `json:"cell"`
}

// memoryConfig says when the host is short of memory; see pressure.Policy.
type memoryConfig struct {
	Enabled          bool                `json:"enabled"`
	StallPercent     int                 `json:"stallPercent"`
	AvailablePercent int                 `json:"availablePercent"`
	ClearAfter       configfile.Duration `json:"clearAfter"`
}

// check returns the policy, the zero value where it is off.
func (c memoryConfig) check() (p pressure.Policy, err error) {
	var errs []error
	percent := func(field string, value int, least, most pressure.Percent) pressure.Percent {
		if value < int(least/100) || value > int(most/100) {
			errs = append(errs, fmt.Errorf("memoryPressure.%s: %d is outside %d..%d percent; memoryPressure.enabled: false turns it off", field, value, least/100, most/100))
			return 0
		}
		return 100 * pressure.Percent(value)
	}
	p.Stall = percent("stallPercent", c.StallPercent, agent.MinStall, agent.MaxStall)
	p.Available = percent("availablePercent", c.AvailablePercent, agent.MinAvailable, agent.MaxAvailable)
	p.Clear, err = c.ClearAfter.Check("memoryPressure.clearAfter", agent.MinClearMemory, agent.MaxClearMemory)
	if err = errors.Join(append(errs, err)...); err != nil || !c.Enabled {
		return pressure.Policy{}, err
	}
	return p, nil
}

type logConfig struct {
	Level  string `json:"level"`
	Format string `json:"format"`
}

// defaultPods is the most members at once on a node, as of a kubelet.
const defaultPods = 110

// defaults is the configuration without a file or flags.
func defaults() config {
	return config{
		Cluster: "muster", DataDir: "/var/lib/muster-agent", AssignmentsMode: "0640",
		Listen: "127.0.0.1:8472", MetricsListen: "127.0.0.1:8473", Pods: defaultPods,
		Discovery: discoveryConfig{
			SysfsRoot: "/", Rediscover: configfile.DurationOf(5 * time.Minute), Timeout: configfile.DurationOf(agent.DiscoveryLimit),
			HangAfter: configfile.DurationOf(30 * time.Second), Retry: configfile.DurationOf(30 * time.Second),
		},
		Gossip: gossipConfig{
			Enabled: true, SerfBind: "127.0.0.1:7946", SerfRPC: "127.0.0.1:7373", CapacityBind: "127.0.0.1:7947", Cell: "0",
		},
		Orphans:   orphansConfig{Enabled: true, Ignore: slices.Clone(agent.DefaultIgnore)},
		Heartbeat: configfile.DurationOf(10 * time.Second),
		MemoryPressure: memoryConfig{
			Enabled: true, StallPercent: 10, AvailablePercent: 5, ClearAfter: configfile.DurationOf(time.Minute),
		},
		Work: workConfig{Tasks: 65536, ScriptTimeout: configfile.DurationOf(time.Minute), Devices: []string{"/dev/infiniband/*"}},
		Kubelet: kubeletConfig{
			Resource: deviceplugin.DefaultResource, Strategies: []deviceplugin.Strategy{deviceplugin.EnvVar}, CDIKind: deviceplugin.DefaultCDIKind,
			Sockets: deviceplugin.DefaultSockets, PodResources: deviceplugin.DefaultPodResources,
		},
		Log: logConfig{Level: "info", Format: "text"},
	}
}

// settings is a configuration that has been checked.
type settings struct {
	config
	node           resource.NodeID
	filesMode      fs.FileMode
	reservedCPUs   bitset.Set
	reservedMemory resource.Bytes
	declared       []grant.Count // but the storage
	token          rpcauth.Token
	serfToken      rpcauth.Token
	metricsToken   rpcauth.Token // zero where the metrics need none
	heartbeat      time.Duration
	assumeDead     time.Duration
	rediscover     time.Duration
	discovery      time.Duration // for all calls together
	hangAfter      time.Duration
	driverRetry    time.Duration
	memory         pressure.Policy
	kubelet        *deviceplugin.Config // nil: the kubelet gets no devices
	users          *users.Table         // nil: the agent starts no work
	attach         *agent.AttachConfig  // nil: there is no socket for launchers
	level          slog.Level
}

var labelKey = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]{0,251}[A-Za-z0-9])?$`)

// check validates a configuration and reads the token files. The error joins
// one entry per wrong field, each with the field and its value.
func (c config) check(hostname func() (string, error)) (settings, error) {
	s := settings{config: c, node: resource.NodeID(c.NodeID)}
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	keep := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	if c.NodeID == "" {
		name, err := hostname()
		if err != nil {
			refuse("nodeID: not set, and the host's name is unknown: %w", err)
		}
		s.node = resource.NodeID(strings.ToLower(name))
	}
	if len(errs) == 0 {
		keep(configfile.CheckName("nodeID", string(s.node)))
	}
	keep(configfile.CheckName("cluster", c.Cluster))
	if !filepath.IsAbs(c.DataDir) {
		refuse("dataDir: %q: want an absolute path", c.DataDir)
	}
	if c.AssignmentsDir != "" && !filepath.IsAbs(c.AssignmentsDir) {
		refuse("assignmentsDir: %q: want an absolute path", c.AssignmentsDir)
	}
	if !filepath.IsAbs(c.Discovery.SysfsRoot) {
		refuse("discovery.sysfsRoot: %q: want an absolute path", c.Discovery.SysfsRoot)
	}
	modes := map[configfile.Scalar]fs.FileMode{"0600": 0o600, "0640": 0o640, "0644": 0o644}
	if s.filesMode = modes[c.AssignmentsMode]; s.filesMode == 0 {
		refuse(`assignmentsMode: %q: want "0600" (the agent's user alone), "0640" (and the folder's group) or "0644" (everybody), in quotes`, c.AssignmentsMode)
	}
	checkListen, checkRemote := configfile.CheckListen, configfile.CheckRemote
	if c.TLS.Enabled {
		checkListen, checkRemote = configfile.CheckListenAnywhere, configfile.CheckRemoteAnywhere
	}
	keep(checkListen("listen", c.Listen))
	keep(configfile.CheckAdvertise("advertise", c.Advertise))
	if c.MetricsListen != "" {
		keep(checkListen("metricsListen", c.MetricsListen))
	}
	if c.MetricsTokenFile != "" {
		var err error
		if s.metricsToken, err = rpcauth.ReadFile(c.MetricsTokenFile); err != nil {
			refuse("metricsTokenFile: %w", err)
		}
	}
	for i, a := range c.Coordinators {
		keep(checkRemote(fmt.Sprintf("coordinators[%d]", i), a))
	}
	for i, a := range c.Enrollment {
		keep(checkRemote(fmt.Sprintf("enrollment[%d]", i), a))
	}
	for _, k := range slices.Sorted(maps.Keys(c.Labels)) {
		if !labelKey.MatchString(k) || len(c.Labels[k]) > 253 {
			refuse("labels: %.80q=%.80q: want a key of A-Z, a-z, 0-9, '.', '_', '/', '-' and a value of at most 253 bytes", k, c.Labels[k])
		}
	}
	cpus, err := bitset.Parse(c.Reserved.CPUs)
	if err != nil {
		refuse("reserved.cpus: %w", err)
	}
	s.reservedCPUs = cpus
	if c.Reserved.Memory != "" {
		amount, err := resource.ParseQuantity(string(c.Reserved.Memory), 1)
		if err != nil {
			refuse("reserved.memory: %w", err)
		}
		s.reservedMemory = resource.Bytes(amount)
	}
	s.declared, err = c.counts()
	keep(err)
	s.heartbeat, err = c.Heartbeat.Check("heartbeat", 100*time.Millisecond, 5*time.Minute)
	keep(err)
	if c.AssumeDeadAfter != configfile.DurationOf(0) { // off
		s.assumeDead, err = c.AssumeDeadAfter.Check("assumeDeadAfter", agent.MinAssumeDead, agent.MaxAssumeDead)
		if err != nil {
			refuse("%w; 0s turns it off", err)
		}
	}
	if limit := c.Labels[agent.AssumeDeadLabel]; limit != "" {
		refuse("labels: %q=%.80q: assumeDeadAfter sets this label; remove it", agent.AssumeDeadLabel, limit)
	}
	s.rediscover, err = c.Discovery.Rediscover.Check("discovery.rediscover", 100*time.Millisecond, 24*time.Hour)
	keep(err)
	s.discovery, err = c.Discovery.Timeout.Check("discovery.timeout", 100*time.Millisecond, 10*time.Minute)
	keep(err)
	s.hangAfter, err = c.Discovery.HangAfter.Check("discovery.hangAfter", 100*time.Millisecond, 10*time.Minute)
	keep(err)
	s.driverRetry, err = c.Discovery.Retry.Check("discovery.retry", 100*time.Millisecond, time.Hour)
	keep(err)
	s.memory, err = c.MemoryPressure.check()
	keep(err)
	s.kubelet, err = c.Kubelet.check()
	keep(err)
	s.users, err = c.Work.check(os.Geteuid(), users.Lookup)
	keep(err)
	keep(c.Work.checkBounds())
	s.attach, err = c.Attach.check(s.users, users.Lookup)
	keep(err)
	for i, name := range c.Orphans.Ignore {
		if name == "" || strings.ContainsAny(name, "/ ") {
			refuse("orphans.ignore[%d]: %q: want the name of a command, without its folder", i, name)
		}
	}
	errs = append(errs, c.Gossip.check(checkListen, checkRemote)...)
	if !c.Gossip.Enabled && len(c.Coordinators) == 0 {
		refuse("coordinators: none, and gossip is off; name at least one address")
	}
	if err := s.level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		refuse("log.level: %q: want debug, info, warn or error", c.Log.Level)
	}
	if !slices.Contains([]string{"text", "json"}, c.Log.Format) {
		refuse("log.format: %q: want text or json", c.Log.Format)
	}
	keep(s.checkProof())
	return s, errors.Join(errs...)
}

// enrollAt are the addresses where this node gets its certificate.
func (s *settings) enrollAt() []string {
	if len(s.Enrollment) > 0 {
		return s.Enrollment
	}
	return s.Coordinators
}

// checkProof checks how this agent proves itself: by a certificate or by a
// token, never both.
func (s *settings) checkProof() error {
	c := &s.config
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	var err error
	switch {
	case c.TLS.Enabled && c.TokenFile != "":
		refuse("tokenFile: %q: unused with tls.enabled, where each node has a certificate; remove it", c.TokenFile)
	case c.TLS.Enabled && c.BootstrapTokenFile != "" && len(s.enrollAt()) == 0:
		refuse("coordinators: none; to enroll by bootstrapTokenFile %q, name at least one", c.BootstrapTokenFile)
	case c.TLS.Enabled:
	case len(c.Enrollment) > 0:
		refuse("enrollment: %q: nodes enrol only with tls.enabled", c.Enrollment)
	case c.BootstrapTokenFile != "":
		refuse("bootstrapTokenFile: %q: nodes have certificates only with tls.enabled", c.BootstrapTokenFile)
	case c.Advertise != "":
		refuse("advertise: %q: without tls.enabled nothing can be reached from elsewhere", c.Advertise)
	case c.TokenFile == "":
		refuse("tokenFile: not set; it holds the cluster's token")
	default:
		if s.token, err = rpcauth.ReadFile(c.TokenFile); err != nil {
			refuse("tokenFile: %w", err)
		}
	}
	s.serfToken = s.token
	if c.Gossip.SerfRPCTokenFile != "" {
		if s.serfToken, err = rpcauth.ReadFile(c.Gossip.SerfRPCTokenFile); err != nil {
			refuse("gossip.serfRPCTokenFile: %w", err)
		}
	}
	return errors.Join(errs...)
}

func (g gossipConfig) check(checkListen, checkRemote func(field, address string) error) []error {
	if !g.Enabled {
		return nil
	}
	var errs []error
	keep := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	keep(checkListen("gossip.serfBind", g.SerfBind))
	keep(checkListen("gossip.capacityBind", g.CapacityBind))
	if g.SerfRPC != "" {
		keep(configfile.CheckListen("gossip.serfRPC", g.SerfRPC))
	}
	for i, a := range g.Join {
		keep(checkRemote(fmt.Sprintf("gossip.join[%d]", i), a))
	}
	for i, a := range g.JoinCapacity {
		keep(checkRemote(fmt.Sprintf("gossip.joinCapacity[%d]", i), a))
	}
	if g.Cell == "" || len(g.Cell) > 16 || strings.Trim(g.Cell, "0123456789abcdefghijklmnopqrstuvwxyz-") != "" {
		errs = append(errs, fmt.Errorf("gossip.cell: %q: want 1 to 16 of a-z, 0-9 and '-'", g.Cell))
	}
	return errs
}
