package cluster

import (
	"fmt"
	"os"
	"testing"

	"github.com/musterd/muster/test/programs"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func TestAClusterWorksAndIsAudited(t *testing.T) {
	c := Start(t, Options{Namespaces: Settings{"bounded": Settings{"quota": Settings{"nvidia.com/gpu": 12}}}})
	load := c.StartLoad(LoadOptions{Seed: 1, Namespaces: []string{"default", "bounded"}, Quota: "bounded", QuotaBetween: [2]int{4, 12}, Patience: Patience})
	load.AwaitProgress(50, "in a healthy cluster")
	operations := load.Stop()
	c.Audit(operations)
	for i, op := range operations {
		if op.Outcome == Unknown {
			t.Errorf("operation %d of a healthy cluster has no answer: %+v", i, op)
		}
	}
	if counts := c.Witness.Counts(); counts.Committed == 0 || counts.Elections == 0 {
		t.Errorf("the witness has seen %+v", counts)
	}
}

func TestHostsAreCutOffFromEachOther(t *testing.T) {
	NeedPrivate(t)
	n := newNetwork(t)
	a, b, c := n.host("a"), n.host("b"), n.host("c")
	serve := newProcess(t, b, t.TempDir(), "etcd", nil, "--data-dir", t.TempDir(),
		"--listen-client-urls", "http://"+b.Address(EtcdPort), "--advertise-client-urls", "http://"+b.Address(EtcdPort),
		"--listen-peer-urls", "http://"+b.Address(etcdPeerPort), "--initial-advertise-peer-urls", "http://"+b.Address(etcdPeerPort),
		"--initial-cluster", "default=http://"+b.Address(etcdPeerPort))
	serve.Start()
	knock := func(from *Host) error {
		return from.command("bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/%s/%d", b.IP, EtcdPort)).Run()
	}
	programs.Eventually(t, Patience, "b serves", func() error { return knock(a) })
	for name, faults := range map[string][]Fault{
		"requests lost": OneWay([]*Host{a}, []*Host{b}),
		"answers lost":  OneWay([]*Host{b}, []*Host{a}),
		"the port lost": {{From: a, To: b, Ports: []int{EtcdPort, 1}}},
		"all of it":     Cut([]*Host{a}, []*Host{b}),
	} {
		n.set(faults...)
		short := a.command("timeout", "0.2", "bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/%s/%d", b.IP, EtcdPort))
		if short.Run() == nil {
			t.Errorf("%s: a still reaches b", name)
		}
		if err := knock(c); err != nil {
			t.Errorf("%s: c does not reach b: %v", name, err)
		}
		n.set()
		if err := knock(a); err != nil {
			t.Errorf("%s, healed: a does not reach b: %v", name, err)
		}
	}
}
