package main

import (
	"strings"
	"testing"

	"github.com/musterd/muster/test/samplefile"
)

// sample is agent.yaml, with the ranges of its keys.
func sample() samplefile.File {
	return samplefile.File{
		Name: "muster-agent.yaml", Defaults: defaults(),
		Facts: map[string]samplefile.Fact{
			"heartbeat":                       {Range: "100ms to 5m", Within: []string{"100ms", "5m"}, Outside: []string{"99ms", "5m1ms"}},
			"assumeDeadAfter":                 {Range: "1m to 24h, or 0s for off", Within: []string{"0s", "1m", "24h"}, Outside: []string{"59s", "24h1s"}},
			"discovery.rediscover":            {Range: "100ms to 24h", Within: []string{"100ms", "24h"}, Outside: []string{"99ms", "24h1ms"}},
			"discovery.timeout":               {Range: "100ms to 10m", Within: []string{"100ms", "10m"}, Outside: []string{"99ms", "10m1ms"}},
			"discovery.hangAfter":             {Range: "100ms to 10m", Within: []string{"100ms", "10m"}, Outside: []string{"99ms", "10m1ms"}},
			"discovery.retry":                 {Range: "100ms to 1h", Within: []string{"100ms", "1h"}, Outside: []string{"99ms", "1h1ms"}},
			"memoryPressure.stallPercent":     {Range: "1 to 100", Unit: "percent", Within: []string{"1", "100"}, Outside: []string{"0", "101"}},
			"memoryPressure.availablePercent": {Range: "1 to 40", Unit: "percent", Within: []string{"1", "40"}, Outside: []string{"0", "41"}},
			"memoryPressure.clearAfter":       {Range: "1s to 1h", Within: []string{"1s", "1h"}, Outside: []string{"999ms", "1h1ms"}},
			"assignmentsMode":                 {Range: "0600, 0640, 0644", Within: []string{`"0600"`, `"0640"`, `"0644"`}, Outside: []string{`"0660"`}},
			"gossip.cell":                     {Range: "1 to 16 of a-z, 0-9 and '-'", Within: []string{`"0"`, "abcdefghijklmnop"}, Outside: []string{`""`, "abcdefghijklmnopq", "A"}},
			"log.level":                       {Range: "debug, info, warn, error", Within: []string{"debug", "info", "warn", "error"}, Outside: []string{"loud"}},
			"log.format":                      {Range: "text, json", Within: []string{"text", "json"}, Outside: []string{"xml"}},
			"nodeID":                          {Range: "1 to 63 characters", Within: []string{"a", "gpu-17.example"}, Outside: []string{"-a", "a/b"}},
			"cluster":                         {Range: "1 to 63 characters", Within: []string{"a"}, Outside: []string{`""`, "a_b"}},
			"work.scriptTimeout":              {Range: "1s to 10m", Within: []string{"1s", "10m"}, Outside: []string{"999ms", "11m"}},
			"work.tasks":                      {Range: "0 to 4194304", Within: []string{"0", "1", "4194304"}, Outside: []string{"-1", "4194305"}},
			"pods":                            {Range: "0 to 1000000", Within: []string{"0", "1", "1000000"}, Outside: []string{"-1", "1000001"}},
			"reserved.memory":                 {Range: "0 or more", Unit: "bytes", Within: []string{"4Gi", `"0"`}, Outside: []string{"-1"}},
		},
		Check: func(t *testing.T, yaml string) error {
			t.Helper()
			if !strings.HasPrefix(yaml, "tokenFile:") {
				yaml += "tokenFile: " + write(t, "token", testToken) + "\n"
			}
			c, err := readOver(write(t, "agent.yaml", yaml))
			if err == nil {
				_, err = c.check(host)
			}
			return err
		},
	}
}

func TestEveryKeyHasAText(t *testing.T)          { sample().Texts(t) }
func TestRangesOfKeysAreKept(t *testing.T)       { sample().Ranges(t) }
func TestTheReferenceOfKeysIsFresh(t *testing.T) { sample().Page(t) }

// noAddress are values that are no address to bind without TLS.
var noAddress = []string{"zzz", "127.0.0.1", "127.0.0.1:70000", "127.0.0.1:-1", "0.0.0.0:1", "192.0.2.1:1"}

// noPeer are lists of addresses that cannot be reached without TLS.
var noPeer = []string{"[zzz]", "['127.0.0.1']", "['127.0.0.1:70000']", "['127.0.0.1:0']", "['192.0.2.1:1']", "['']"}

func TestEveryKeyRefusesBadValues(t *testing.T) {
	sample().Bad(t, map[string][]string{
		"dataDir": {"here", `""`}, "assignmentsDir": {"here"}, "bootstrapTokenFile": {"/token"}, "advertise": {"zzz"},
		"listen": noAddress, "metricsListen": noAddress, "coordinators": noPeer,
		"metricsTokenFile": {"/nowhere/token"}, "enrollment": append([]string{"['127.0.0.1:8475']"}, noPeer...),
		"labels":        {"{'a b': c}", "{muster.dev/assume-dead-after: 5m}", "{a: " + strings.Repeat("z", 300) + "}"},
		"reserved.cpus": {"zzz", "3-1", "-1"},
		"resources": {
			"{fpga: 1}", "{nvidia.com/fpga: 1}", "{example.com/fpga: -1}", "{example.com/fpga: x}", "{example.com/fpga: 2Pi}", "{example.com/fpga: 1 " + strings.Repeat("z", 64) + "}",
		},
		"gossip.join": noPeer, "gossip.joinCapacity": noPeer,
		"gossip.serfBind": noAddress, "gossip.serfRPC": noAddress, "gossip.capacityBind": noAddress,
		"gossip.serfRPCTokenFile": {"/nowhere/token"}, "discovery.sysfsRoot": {"here", `""`},
		"tokenFile": {"/nowhere/token", `""`}, "orphans.ignore": {"[/usr/bin/x]", "['']", "['a b']"},
		"kubelet.pool": {"['0']", "['']"}, "kubelet.shares": {"{GPU-0: 2}", "{GPU-0: 1}"}, "kubelet.resource": {"gpu", `""`, "a/b/c"},
		"kubelet.strategies": {"[volume-mounts]", "['']"}, "kubelet.cdiKind": {"nvidia.com", `""`}, "kubelet.sockets": {"here", `""`}, "kubelet.podResources": {"here", `""`},
		"work.users": {"{A: nobody}", "{ml: no-such-user-here}", "{'*': root}", "{ml: ''}"}, "work.allowRoot": {"true"},
		"attach.socket": {"attach.sock", "/run/../x", "/" + strings.Repeat("x", 107)}, "attach.users": {"{ml: nobody}"},
		"work.helper": {"launch.sock", "/run/../x"}, "work.prolog": {"prolog"}, "work.epilog": {"/etc/../epilog"}, "work.cgroup": {"muster", "/sys/fs/cgroup/"}, "work.images": {"[images]", "[/srv/../x]", "[/srv/]"}, "work.mounts": {"[/srv]", "[data]", "[/srv/../x]", "[/srv/]"}, "work.devices": {"[infiniband]", "[/etc/passwd]", "['/dev/[']", "[/dev/../x]"},
	}, map[string]string{
		"discovery.nvmlLibrary": "the loader knows whether there is such a library",
	})
}
