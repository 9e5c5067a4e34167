package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterd/muster/test/manualtest"
)

// values are bad values of one flag.
func values(all ...string) []manualtest.BadValue {
	var rows []manualtest.BadValue
	for _, v := range all {
		rows = append(rows, manualtest.BadValue{Value: v})
	}
	return rows
}

func TestEveryFlagRefusesBadValues(t *testing.T) {
	token, data := write(t, "token", testToken), filepath.Join(t.TempDir(), "data")
	wide := write(t, "wide", testToken)
	if err := os.Chmod(wide, 0o644); err != nil {
		t.Fatal(err)
	}
	pem := write(t, "ca.pem", "zzz")
	run := func(args ...string) (int, string) {
		ctx, stop := context.WithCancel(t.Context())
		stop() // a program that takes a bad value ends at once
		var out, problems bytes.Buffer
		if args[0] != "inspect" && args[0] != "attach" && args[0] != "done" && args[0] != "version" && args[0] != "completion" {
			args = append([]string{"--token-file=" + token, "--data-dir=" + data}, args...)
		}
		return Run(ctx, args, &out, &problems), problems.String()
	}
	peers := values("zzz", "127.0.0.1", "127.0.0.1:70000", "127.0.0.1:0", "192.0.2.1:1")
	manualtest.Flags(t, tree(), map[string][]manualtest.BadValue{
		"muster-agent version --output": values("xml", ""),
		"muster-agent --config":         {{Value: "/nowhere/agent.yaml", Names: "config: "}, {Value: pem, Names: "config "}, {Value: t.TempDir(), Names: "config: "}},
		"muster-agent --cluster":        values("a_b", "Über"),
		"muster-agent --node-id":        values("a/b", "-a"),
		"muster-agent --data-dir":       values("here"),
		"muster-agent --advertise":      values("zzz"), "muster-agent --bootstrap-token-file": values("/nowhere/token"),
		"muster-agent --token-file":          values("/nowhere/token", wide, pem, t.TempDir()),
		"muster-agent --listen":              values(noAddress...),
		"muster-agent --metrics-listen":      values(noAddress...),
		"muster-agent --coordinators":        peers,
		"muster-agent --sysfs-root":          values("here"),
		"muster-agent --join":                peers,
		"muster-agent --serf-bind":           values(noAddress...),
		"muster-agent --capacity-bind":       values(noAddress...),
		"muster-agent --serf-rpc-addr":       values(noAddress...),
		"muster-agent --serf-rpc-token-file": values("/nowhere/token", wide, pem),
		"muster-agent --heartbeat":           values("0s", "-1s", "1ms", "6m0s"),
		"muster-agent --assume-dead-after":   values("-1m0s", "59s", "25h0m0s"),
		"muster-agent --log-level":           values("loud"),
		"muster-agent --log-format":          values("xml"),
		"muster-agent attach --transaction":  {{Args: []string{"--pid=5"}, Value: "", Names: "--transaction"}},
		"muster-agent attach --pid":          {{Args: []string{"--transaction=a", "--cgroup=/x"}, Value: "5", Names: "one of both"}},
		"muster-agent attach --cgroup":       {{Args: []string{"--transaction=a", "--pid=5"}, Value: "/x", Names: "one of both"}},
		"muster-agent attach --socket":       {{Args: []string{"--transaction=a", "--pid=5"}, Value: "", Names: "--socket"}},
		"muster-agent attach --member":       values("zzz"),
		"muster-agent done --transaction":    {{Args: []string{"--status=0"}, Value: "", Names: "--transaction"}},
		"muster-agent done --status":         {{Args: []string{"--transaction=a"}, Value: "256", Names: "--status"}, {Args: []string{"--transaction=a"}, Value: "term", Names: "--status"}},
		"muster-agent done --socket":         {{Args: []string{"--transaction=a", "--status=0"}, Value: "", Names: "--socket"}},
		"muster-agent done --member":         values("zzz"),
		"muster-agent inspect --output":      values("xml"),
		"muster-agent inspect --timeout":     values("1ms", "-1s", "51s"),
		"muster-agent inspect --sysfs-root":  {{Value: "/nowhere", Code: exitFailed, Names: "/nowhere"}},
	}, map[string]string{
		"muster-agent --nvml-library":         "the loader knows whether there is such a library",
		"muster-agent inspect --nvml-library": "the loader knows whether there is such a library",
	}, run)
	if _, err := os.Stat(data); err == nil {
		t.Errorf("the data folder %s was made by a program that refused its flags", data)
	}
}
