package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
	"github.com/musterd/muster/rpcauth"
)

// maxConfig bounds a config file, in bytes.
const maxConfig = 1 << 20

// config is the config file; systemd/muster-agent.yaml documents every key.
type config struct {
	Cluster       string            `json:"cluster"`
	NodeID        string            `json:"nodeID"`
	DataDir       string            `json:"dataDir"`
	TokenFile     string            `json:"tokenFile"`
	Listen        string            `json:"listen"`
	MetricsListen string            `json:"metricsListen"`
	Coordinators  []string          `json:"coordinators"`
	Labels        map[string]string `json:"labels"`
	Reserved      reservedConfig    `json:"reserved"`
	Discovery     discoveryConfig   `json:"discovery"`
	Gossip        gossipConfig      `json:"gossip"`
	Heartbeat     duration          `json:"heartbeat"`
	Log           logConfig         `json:"log"`
}

type reservedConfig struct {
	CPUs   string `json:"cpus"`
	Memory scalar `json:"memory"`
}

type discoveryConfig struct {
	SysfsRoot   string `json:"sysfsRoot"`
	NVMLLibrary string `json:"nvmlLibrary"`
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

type logConfig struct {
	Level  string `json:"level"`
	Format string `json:"format"`
}

// defaults is the configuration without a file or flags.
func defaults() config {
	return config{
		Cluster: "muster", DataDir: "/var/lib/muster-agent",
		Listen: "127.0.0.1:8472", MetricsListen: "127.0.0.1:8473",
		Discovery: discoveryConfig{SysfsRoot: "/"},
		Gossip: gossipConfig{
			Enabled: true, SerfBind: "127.0.0.1:7946", SerfRPC: "127.0.0.1:7373", CapacityBind: "127.0.0.1:7947", Cell: "0",
		},
		Heartbeat: duration(10 * time.Second),
		Log:       logConfig{Level: "info", Format: "text"},
	}
}

// readConfig reads a file over the defaults. Every error names the file.
func readConfig(path string) (config, error) {
	c := defaults()
	info, err := os.Stat(path)
	if err != nil {
		return config{}, fmt.Errorf("config: %w", err)
	}
	if info.Size() > maxConfig {
		return config{}, fmt.Errorf("config %s: %d bytes, more than %d", path, info.Size(), maxConfig)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return config{}, fmt.Errorf("config: %w", err)
	}
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return config{}, fmt.Errorf("config %s: %w", path, plainYAML(err))
	}
	return c, nil
}

// plainYAML drops the library's prefixes, which say nothing about the file.
func plainYAML(err error) error {
	text := err.Error()
	for _, prefix := range []string{"error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ", "json: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return errors.New(text)
}

// duration reads "10s" and the like.
type duration time.Duration

func (d *duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("duration %s: want text such as \"10s\"", data)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("duration %q: want a number and a unit, such as \"10s\" or \"1m30s\"", text)
	}
	*d = duration(parsed)
	return nil
}

// scalar reads text or a number as text.
type scalar string

func (s *scalar) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*s = scalar(text)
		return nil
	}
	if _, err := strconv.ParseFloat(string(data), 64); err != nil {
		return fmt.Errorf("%s: want a quantity such as \"4Gi\"", data)
	}
	*s = scalar(data)
	return nil
}

// settings is a configuration that has been checked.
type settings struct {
	config
	node           resource.NodeID
	reservedCPUs   bitset.Set
	reservedMemory resource.Bytes
	token          rpcauth.Token
	serfToken      rpcauth.Token
	level          slog.Level
}

// nodeID are names that work in file names, keys and tags alike.
var nodeID = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

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
	if len(errs) == 0 && !nodeID.MatchString(string(s.node)) {
		refuse("nodeID: %q: want 1 to 63 of a-z, 0-9, '-' and '.', with a letter or digit at both ends", s.node)
	}
	if !nodeID.MatchString(c.Cluster) {
		refuse("cluster: %q: want 1 to 63 of a-z, 0-9, '-' and '.', with a letter or digit at both ends", c.Cluster)
	}
	if !filepath.IsAbs(c.DataDir) {
		refuse("dataDir: %q: want an absolute path", c.DataDir)
	}
	keep(listenAddress("listen", c.Listen))
	if c.MetricsListen != "" {
		keep(listenAddress("metricsListen", c.MetricsListen))
	}
	for i, a := range c.Coordinators {
		keep(remoteAddress(fmt.Sprintf("coordinators[%d]", i), a))
	}
	for _, k := range sortedKeys(c.Labels) {
		if !labelKey.MatchString(k) || len(c.Labels[k]) > 253 {
			refuse("labels: %q=%q: want a key of A-Z, a-z, 0-9, '.', '_', '/', '-' and a value of at most 253 bytes", k, c.Labels[k])
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
	if d := time.Duration(c.Heartbeat); d < 100*time.Millisecond || d > 5*time.Minute {
		refuse("heartbeat: %s is outside 100ms..5m", d)
	}
	errs = append(errs, c.Gossip.check()...)
	if !c.Gossip.Enabled && len(c.Coordinators) == 0 {
		refuse("coordinators: none, and gossip is off; name at least one address")
	}
	if err := s.level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		refuse("log.level: %q: want debug, info, warn or error", c.Log.Level)
	}
	if !slices.Contains([]string{"text", "json"}, c.Log.Format) {
		refuse("log.format: %q: want text or json", c.Log.Format)
	}
	if c.TokenFile == "" {
		refuse("tokenFile: not set; it holds the cluster's token")
	} else if s.token, err = rpcauth.ReadFile(c.TokenFile); err != nil {
		refuse("tokenFile: %w", err)
	}
	s.serfToken = s.token
	if c.Gossip.SerfRPCTokenFile != "" {
		if s.serfToken, err = rpcauth.ReadFile(c.Gossip.SerfRPCTokenFile); err != nil {
			refuse("gossip.serfRPCTokenFile: %w", err)
		}
	}
	return s, errors.Join(errs...)
}

func (g gossipConfig) check() []error {
	if !g.Enabled {
		return nil
	}
	var errs []error
	keep := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	keep(listenAddress("gossip.serfBind", g.SerfBind))
	keep(listenAddress("gossip.capacityBind", g.CapacityBind))
	if g.SerfRPC != "" {
		keep(listenAddress("gossip.serfRPC", g.SerfRPC))
	}
	for i, a := range g.Join {
		keep(remoteAddress(fmt.Sprintf("gossip.join[%d]", i), a))
	}
	for i, a := range g.JoinCapacity {
		keep(remoteAddress(fmt.Sprintf("gossip.joinCapacity[%d]", i), a))
	}
	if g.Cell == "" || len(g.Cell) > 16 || strings.Trim(g.Cell, "0123456789abcdefghijklmnopqrstuvwxyz-") != "" {
		errs = append(errs, fmt.Errorf("gossip.cell: %q: want 1 to 16 of a-z, 0-9 and '-'", g.Cell))
	}
	return errs
}

// listenAddress checks an address to bind: loopback, port 0 to 65535.
func listenAddress(field, address string) error {
	if _, err := splitPort(field, address); err != nil {
		return err
	}
	return rpcauth.CheckLoopback(field, address)
}

// remoteAddress checks an address to reach: loopback, port 1 to 65535.
func remoteAddress(field, address string) error {
	port, err := splitPort(field, address)
	if err != nil {
		return err
	}
	if port == 0 {
		return fmt.Errorf("%s: %q: port 0 cannot be reached", field, address)
	}
	return rpcauth.CheckLoopback(field, address)
}

func splitPort(field, address string) (uint64, error) {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0, fmt.Errorf("%s: %q: want HOST:PORT", field, address)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%s: %q: port %q is outside 0..65535", field, address, text)
	}
	return port, nil
}

// hostPort splits an address that listenAddress accepted.
func hostPort(address string) (string, int) {
	host, text, _ := net.SplitHostPort(address)
	port, _ := strconv.Atoi(text)
	if host == "localhost" {
		host = netip.AddrFrom4([4]byte{127, 0, 0, 1}).String()
	}
	return host, port
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
