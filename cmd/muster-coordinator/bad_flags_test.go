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
	token, admin, data := write(t, "token", clusterToken), write(t, "admin-token", adminToken), filepath.Join(t.TempDir(), "data")
	wide, short := write(t, "wide", clusterToken), write(t, "short", "zzz")
	if err := os.Chmod(wide, 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (int, string) {
		ctx, stop := context.WithCancel(t.Context())
		stop() // a program that takes a bad value ends at once
		var out, problems bytes.Buffer
		if args[0] != "version" && args[0] != "completion" {
			args = append([]string{"--token-file=" + token, "--admin-token-file=" + admin, "--data-dir=" + data}, args...)
		}
		code := program{args: args, stdout: &out, stderr: &problems, hostname: host, env: func(string) string { return "" }}.run(ctx)
		return code, problems.String()
	}
	files := values("/nowhere/token", wide, short, t.TempDir())
	peers := values("zzz", "127.0.0.1", "127.0.0.1:70000", "127.0.0.1:0", "192.0.2.1:1")
	listen := values(noAddress...)
	manualtest.Flags(t, tree(), map[string][]manualtest.BadValue{
		"muster-coordinator version --output":      values("xml", ""),
		"muster-coordinator --config":              {{Value: "/nowhere/c.yaml", Names: "config: "}, {Value: short, Names: "config "}, {Value: t.TempDir(), Names: "config: "}},
		"muster-coordinator --cluster":             values("a_b", "Über", ""),
		"muster-coordinator --id":                  values("a/b", "-a"),
		"muster-coordinator --data-dir":            values("here"),
		"muster-coordinator --advertise":           values("zzz", "192.0.2.1"),
		"muster-coordinator --token-file":          files,
		"muster-coordinator --admin-token-file":    append(files, manualtest.BadValue{Value: token}),
		"muster-coordinator --rest-listen":         listen,
		"muster-coordinator --grpc-listen":         listen,
		"muster-coordinator --etcd-endpoints":      append(peers, manualtest.BadValue{Value: "http://192.0.2.1:2379", Shown: "192.0.2.1:2379"}, manualtest.BadValue{Value: "https://e", Shown: `"e"`}),
		"muster-coordinator --etcd-ca-file":        values("/ca.pem"),
		"muster-coordinator --etcd-cert-file":      values("/cert.pem"),
		"muster-coordinator --etcd-key-file":       values("/key.pem"),
		"muster-coordinator --etcd-server-name":    values("etcd"),
		"muster-coordinator --etcd-username":       values("muster"),
		"muster-coordinator --etcd-password-file":  values("/nowhere/password"),
		"muster-coordinator --join":                peers,
		"muster-coordinator --serf-bind":           listen,
		"muster-coordinator --serf-rpc-addr":       listen,
		"muster-coordinator --serf-rpc-token-file": files,
		"muster-coordinator --capacity-bind":       listen,
		"muster-coordinator --log-level":           values("loud"),
	}, nil, run)
	if _, err := os.Stat(data); err == nil {
		t.Errorf("the data folder %s was made by a program that refused its flags", data)
	}
}
