package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mustBindLoopbackOnly checks that a process can be reached on the loopback
// interface alone, on exactly these addresses (TCP), and not on etcd's ports.
func mustBindLoopbackOnly(t *testing.T, p *process, tcp ...string) {
	t.Helper()
	var got []string
	for _, s := range listening(t, p.cmd.Process.Pid) {
		if !s.local.Addr().IsLoopback() {
			t.Errorf("%s can be reached on %s, which is not loopback", p.name, s)
		}
		if port := s.local.Port(); port == 2379 || port == 2380 {
			t.Errorf("%s listens on etcd's port: %s", p.name, s)
		}
		if s.network == "tcp" {
			got = append(got, s.local.String())
		}
	}
	slices.Sort(tcp)
	if slices.Sort(got); !slices.Equal(got, tcp) {
		t.Errorf("%s listens on %v, want exactly %v", p.name, got, tcp)
	}
}

func TestEveryProgramBindsLoopbackAndNothingElse(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	gossip := c.coordinator.settings["gossip"].(settings)
	mustBindLoopbackOnly(t, c.coordinator.process, c.rest, c.grpc, gossip["serfBind"].(string), gossip["serfRPC"].(string), gossip["capacityBind"].(string))
	for _, a := range c.agents {
		gossip := a.settings["gossip"].(settings)
		mustBindLoopbackOnly(t, a.process, a.settings["listen"].(string), a.settings["metricsListen"].(string),
			gossip["serfBind"].(string), gossip["serfRPC"].(string), gossip["capacityBind"].(string))
	}
}

func TestDevBindsLoopbackAndNothingElse(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "2", "--profile", "gpu2")
	var addresses []string
	for _, address := range d.listed.all() {
		addresses = append(addresses, address)
	}
	mustBindLoopbackOnly(t, d.process, addresses...)
}

func TestDataFoldersAreTheirOwnersAlone(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	for _, dir := range []string{c.coordinator.dataDir, filepath.Join(c.coordinator.dataDir, "etcd"), filepath.Join(c.agents[0].dataDir, "journal")} {
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %04o, want nothing for group and others", dir, info.Mode().Perm())
		}
	}
	for _, d := range []*daemon{c.coordinator, c.agents[0]} {
		for _, secret := range []string{clusterToken, adminToken} {
			if strings.Contains(d.process.stdout.String()+d.process.stderr.String(), secret) {
				t.Errorf("%s writes a token into its log", d.name)
			}
		}
	}
}

func TestTokenFilesThatOthersMayReadAreRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	for _, d := range []*daemon{c.coordinator, c.agents[0]} {
		for _, mode := range []os.FileMode{0o640, 0o604, 0o660} {
			file := filepath.Join(t.TempDir(), "token")
			write(t, file, []byte(clusterToken), 0o600)
			if err := os.Chmod(file, mode); err != nil {
				t.Fatal(err)
			}
			d.configure(d.settings.clone().set("tokenFile", file))
			d.refuses(2, nil, d.file, "tokenFile", file, "chmod 0600")
		}
		for _, content := range []string{"abc", "", clusterToken + "\n" + clusterToken} {
			file := filepath.Join(t.TempDir(), "token")
			write(t, file, []byte(content), 0o600)
			d.configure(d.settings.clone().set("tokenFile", file))
			d.refuses(2, nil, "tokenFile", file)
		}
		d.configure(d.settings.clone().set("tokenFile", filepath.Join(t.TempDir(), "absent")))
		d.refuses(2, nil, "tokenFile", "absent")
		if exists(d.dataDir) {
			t.Errorf("%s made its data folder although it refused to start", d.name)
		}
	}
}

func TestAddressesBeyondLoopbackAreRefusedByField(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	fields := map[*daemon][]string{
		c.coordinator: {"restListen", "grpcListen", "gossip.serfBind", "gossip.capacityBind", "gossip.serfRPC"},
		c.agents[0]:   {"listen", "metricsListen", "gossip.serfBind", "gossip.capacityBind", "gossip.serfRPC"},
	}
	for d, names := range fields {
		for _, field := range names {
			for _, address := range []string{"0.0.0.0:18470", "192.0.2.1:18470", "[::]:18470", ":18470"} {
				d.configure(d.settings.clone().set(field, address))
				d.refuses(2, nil, d.file, field, address)
			}
		}
		if exists(d.dataDir) {
			t.Errorf("%s made its data folder although it refused to start", d.name)
		}
	}
}
