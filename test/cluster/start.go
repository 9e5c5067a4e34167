package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/musterd/muster/coordinator/store/etcd"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/etcdcluster"
	nvmltest "github.com/musterd/muster/test/nvml"
)

// validity is that of certificates of the store, longer than any test.
const validity = 12 * time.Hour

func (c *Cluster) folder(host string) string {
	dir := filepath.Join(c.dir, host)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		c.t.Fatal(err)
	}
	return dir
}

func (c *Cluster) startEtcd() {
	c.t.Helper()
	var hosts []*Host
	var peers []string
	for i := range c.Options.Etcd {
		h := c.net.host(fmt.Sprintf("etcd-%d", i+1))
		hosts, peers = append(hosts, h), append(peers, fmt.Sprintf("%s=https://%s", h.Name, h.Address(etcdPeerPort)))
	}
	until := time.Now().Add(validity)
	authority := etcdcluster.NewAuthority(c.t, filepath.Join(c.dir, "etcd-authority"))
	cert, key := authority.Issue(c.t, etcdcluster.Leaf{Name: "client", NotAfter: until})
	c.storeTLS = etcd.TLS{CAFile: authority.File, CertFile: cert, KeyFile: key}
	for _, h := range hosts {
		dir := c.folder(h.Name)
		client, peer := "https://"+h.Address(EtcdPort), "https://"+h.Address(etcdPeerPort)
		// Peers check the address that a connection comes from too.
		cert, key := authority.Issue(c.t, etcdcluster.Leaf{Name: h.Name, Hosts: []string{h.IP, "127.0.0.1"}, NotAfter: until})
		p := newProcess(c.t, h, dir, "etcd", nil,
			"--name", h.Name, "--data-dir", filepath.Join(dir, "data"), "--logger", "zap", "--log-level", "warn", "--max-txn-ops", "2048",
			"--cert-file", cert, "--key-file", key, "--trusted-ca-file", authority.File, "--client-cert-auth",
			"--peer-cert-file", cert, "--peer-key-file", key, "--peer-trusted-ca-file", authority.File, "--peer-client-cert-auth",
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", strings.Join(peers, ","), "--initial-cluster-state", "new", "--initial-cluster-token", c.dir)
		p.Start()
		c.Etcd = append(c.Etcd, p)
	}
}

// Endpoints are the members' URLs.
func (c *Cluster) Endpoints() []string {
	var endpoints []string
	for _, p := range c.Etcd {
		endpoints = append(endpoints, "https://"+p.Address(EtcdPort))
	}
	return endpoints
}

func (c *Cluster) connect() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	s, err := etcd.Connect(ctx, etcd.Config{Endpoints: c.Endpoints(), TLS: c.storeTLS})
	if err != nil {
		c.t.Fatal(err)
	}
	c.Store = s
	c.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			c.t.Error(err)
		}
	})
}

func (c *Cluster) startCoordinators() {
	c.t.Helper()
	var join []string
	for i := range c.Options.Coordinators {
		h := c.net.host(fmt.Sprintf("coordinator-%d", i+1))
		dir := c.folder(h.Name)
		settings := Settings{
			"cluster": Name, "id": h.Name, "dataDir": filepath.Join(dir, "data"),
			"adminTokenFile": filepath.Join(c.dir, "admin-token"), "tls": Settings{"enabled": true, "rest": true},
			"etcdTLS":    Settings{"caFile": c.storeTLS.CAFile, "certFile": c.storeTLS.CertFile, "keyFile": c.storeTLS.KeyFile},
			"restListen": h.Address(RESTPort), "grpcListen": h.Address(GRPCPort), "etcdEndpoints": c.Endpoints(),
			"leaseTTL": c.Options.LeaseTTL.String(),
			"gossip":   Settings{"serfBind": h.Address(leaderSerfPort), "capacityBind": h.Address(leaderCapacityPort), "join": slices.Clone(join)},
		}
		if c.Options.Namespaces != nil {
			settings["namespaces"] = c.Options.Namespaces
		}
		maps.Copy(settings, c.Options.CoordinatorSettings)
		p := newProcess(c.t, h, dir, "muster-coordinator", nil, "--config", c.config(dir, settings))
		join = append(join, h.Address(leaderSerfPort))
		p.Start()
		c.Coordinators = append(c.Coordinators, p)
	}
}

func (c *Cluster) startAgents() {
	c.t.Helper()
	library := nvmltest.Build(c.t)
	profile := profileOf(c.t, c.Options.GPUs)
	var coordinators, join []string
	for _, p := range c.Coordinators {
		coordinators, join = append(coordinators, p.Address(GRPCPort)), append(join, p.Address(leaderSerfPort))
	}
	for i := range c.Options.Agents {
		h := c.net.host(fmt.Sprintf("node-%d", i+1))
		dir := c.folder(h.Name)
		a := &Agent{Node: resource.NodeID(h.Name), Dir: filepath.Join(dir, "data"), Boot: filepath.Join(dir, "boot_id")}
		if c.Options.AgentDir != nil {
			a.Dir = cmp.Or(c.Options.AgentDir(a.Node), a.Dir)
		}
		tree := filepath.Join(dir, "tree")
		writeTree(c.t, tree, h.Name, profile.Topology())
		writeBoot(c.t, a.Boot)
		settings := Settings{
			"cluster": Name, "nodeID": h.Name, "bootstrapTokenFile": c.tokenFile(a.Node), "tls": Settings{"enabled": true}, "dataDir": a.Dir,
			"assignmentsDir": filepath.Join(dir, "assignments"),
			"listen":         h.Address(AgentPort), "metricsListen": h.Address(metricsPort), "heartbeat": "1s",
			"coordinators": coordinators, "discovery": Settings{"sysfsRoot": tree},
			"gossip": Settings{
				"serfBind": h.Address(agentSerfPort), "serfRPC": h.Address(serfRPCPort), "capacityBind": h.Address(agentCapacityPort), "join": join,
			},
		}
		if c.Options.AgentSettings != nil {
			maps.Copy(settings, c.Options.AgentSettings(a.Node))
		}
		env := nvmltest.Environ(library, nvmltest.WriteScript(c.t, dir, profile, h.Name))
		a.Process = newProcess(c.t, h, dir, "muster-agent", env, "--config", c.config(dir, settings))
		if c.net.private {
			a.hide = map[string]string{"/proc/sys/kernel/random/boot_id": a.Boot}
		}
		c.admit(a.Node, false)
		a.Start()
		c.Agents = append(c.Agents, a)
	}
}

func (c *Cluster) config(dir string, s Settings) string {
	text, err := yaml.Marshal(s)
	if err != nil {
		c.t.Fatal(err)
	}
	path := filepath.Join(dir, "config.yaml")
	writeFile(c.t, path, string(text))
	return path
}
