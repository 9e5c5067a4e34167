package main

import (
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/musterd/muster/cmd/configfile"
)

// flags are the command line; a flag that is given overrides the config file.
type flags struct {
	configFile string
	newJournal bool
	values     config
	heartbeat  time.Duration
	assumeDead time.Duration
	noGossip   bool
}

func (f *flags) add(set *pflag.FlagSet) {
	d := defaults()
	v := &f.values
	set.StringVar(&f.configFile, "config", "", "config file (YAML); systemd/muster-agent.yaml documents it")
	set.BoolVar(&f.newJournal, "new-journal", false, "move the journal aside and recover from the store")
	set.StringVar(&v.Cluster, "cluster", d.Cluster, "the cluster's name")
	set.StringVar(&v.NodeID, "node-id", "", "this host's name in the cluster (default the host name)")
	set.StringVar(&v.DataDir, "data-dir", d.DataDir, "where the journal and the assignment files live")
	set.BoolVar(&v.TLS.Enabled, "tls", false, "prove this node by a certificate; all connections are mutual TLS")
	set.StringVar(&v.BootstrapTokenFile, "bootstrap-token-file", "", "file of mode 0600 with a token of muster token create, for a node without a certificate")
	set.StringVar(&v.Advertise, "advertise", "", "IP address that others reach this host at (default the one that is bound)")
	set.StringVar(&v.TokenFile, "token-file", "", "file of mode 0600 with the cluster's token, without --tls")
	set.StringVar(&v.Listen, "listen", d.Listen, "where the leader reaches this agent")
	set.StringVar(&v.MetricsListen, "metrics-listen", d.MetricsListen, `where /metrics is served; "" for nowhere`)
	set.StringSliceVar(&v.Coordinators, "coordinators", nil, "coordinators to register with")
	set.StringVar(&v.Discovery.SysfsRoot, "sysfs-root", d.Discovery.SysfsRoot, "a folder that holds sys/ (and proc/)")
	set.StringVar(&v.Discovery.NVMLLibrary, "nvml-library", "", "the NVML library to open instead of what the loader finds")
	set.StringSliceVar(&v.Gossip.Join, "join", nil, "members of the serf ring to join")
	set.StringVar(&v.Gossip.SerfBind, "serf-bind", d.Gossip.SerfBind, "address of the serf ring")
	set.StringVar(&v.Gossip.CapacityBind, "capacity-bind", d.Gossip.CapacityBind, "address of the capacity ring")
	set.StringVar(&v.Gossip.SerfRPC, "serf-rpc-addr", d.Gossip.SerfRPC, `address of the stock serf command line; "" for none`)
	set.StringVar(&v.Gossip.SerfRPCTokenFile, "serf-rpc-token-file", "", "file of mode 0600 with its token (default the cluster's, with --tls one of its own)")
	set.BoolVar(&f.noGossip, "no-gossip", false, "stay out of the rings")
	set.DurationVar(&f.heartbeat, "heartbeat", 10*time.Second, "time between reports of usage")
	set.DurationVar(&f.assumeDead, "assume-dead-after", 0, "without contact for so long, stop what coordinators have granted; 1m to 24h, 0 is off (docs/nodes.md)")
	set.StringVar(&v.Log.Level, "log-level", d.Log.Level, "debug, info, warn or error")
	set.StringVar(&v.Log.Format, "log-format", d.Log.Format, "text or json")
}

// settings merges file and flags and checks the result.
func (f *flags) settings(set *pflag.FlagSet) (settings, error) {
	c := defaults()
	if f.configFile != "" {
		if err := configfile.Read(f.configFile, &c); err != nil {
			return settings{}, usageError{err}
		}
	}
	given := map[string]string{}
	set.Visit(func(flag *pflag.Flag) {
		f.override(&c, flag.Name)
		given[keyOf[flag.Name]] = flag.Name
	})
	s, err := c.check(os.Hostname)
	if err != nil {
		return settings{}, usageError{configfile.NameOrigin(err, f.configFile, given)}
	}
	return s, nil
}

// keyOf are the keys of the configuration that flags override.
var keyOf = map[string]string{
	"cluster": "cluster", "node-id": "nodeID", "data-dir": "dataDir", "tls": "tls.enabled", "bootstrap-token-file": "bootstrapTokenFile",
	"advertise": "advertise", "token-file": "tokenFile", "listen": "listen", "metrics-listen": "metricsListen", "coordinators": "coordinators",
	"sysfs-root": "discovery.sysfsRoot", "nvml-library": "discovery.nvmlLibrary", "join": "gossip.join", "serf-bind": "gossip.serfBind",
	"capacity-bind": "gossip.capacityBind", "serf-rpc-addr": "gossip.serfRPC", "serf-rpc-token-file": "gossip.serfRPCTokenFile",
	"no-gossip": "gossip.enabled", "heartbeat": "heartbeat", "assume-dead-after": "assumeDeadAfter", "log-level": "log.level", "log-format": "log.format",
}

// override takes the value of one flag that was given.
func (f *flags) override(c *config, name string) {
	v := f.values
	switch name {
	case "cluster":
		c.Cluster = v.Cluster
	case "node-id":
		c.NodeID = v.NodeID
	case "data-dir":
		c.DataDir = v.DataDir
	case "tls":
		c.TLS.Enabled = v.TLS.Enabled
	case "bootstrap-token-file":
		c.BootstrapTokenFile = v.BootstrapTokenFile
	case "advertise":
		c.Advertise = v.Advertise
	case "token-file":
		c.TokenFile = v.TokenFile
	case "listen":
		c.Listen = v.Listen
	case "metrics-listen":
		c.MetricsListen = v.MetricsListen
	case "coordinators":
		c.Coordinators = v.Coordinators
	case "sysfs-root":
		c.Discovery.SysfsRoot = v.Discovery.SysfsRoot
	case "nvml-library":
		c.Discovery.NVMLLibrary = v.Discovery.NVMLLibrary
	case "join":
		c.Gossip.Join = v.Gossip.Join
	case "serf-bind":
		c.Gossip.SerfBind = v.Gossip.SerfBind
	case "capacity-bind":
		c.Gossip.CapacityBind = v.Gossip.CapacityBind
	case "serf-rpc-addr":
		c.Gossip.SerfRPC = v.Gossip.SerfRPC
	case "serf-rpc-token-file":
		c.Gossip.SerfRPCTokenFile = v.Gossip.SerfRPCTokenFile
	case "no-gossip":
		c.Gossip.Enabled = !f.noGossip
	case "heartbeat":
		c.Heartbeat = configfile.DurationOf(f.heartbeat)
	case "assume-dead-after":
		c.AssumeDeadAfter = configfile.DurationOf(f.assumeDead)
	case "log-level":
		c.Log.Level = v.Log.Level
	case "log-format":
		c.Log.Format = v.Log.Format
	}
}
