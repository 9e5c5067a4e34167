package doctor

import (
	"context"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
)

// lines are findings as lines.
func lines(list []Finding) string { return found(Report{Findings: list}) }

// The findings that no server of a test can show, from facts that are written down.
func TestFindingsFromFacts(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(in time.Duration) string { return now.Add(in).Format(time.RFC3339) }
	authority := func(in time.Duration) Facts {
		return Facts{authorities: []api.Authority{{Metadata: api.ObjectMeta{Name: "a1"}, Status: api.AuthorityStatus{Expires: at(in), Nodes: 7}}}}
	}
	operator := func(in time.Duration, revoked string) Facts {
		return Facts{operators: []api.OperatorCertificate{{Metadata: api.ObjectMeta{Name: "ann"}, Status: api.OperatorCertificateStatus{Expires: at(in), Revoked: revoked}}}}
	}
	answering := func(endpoint, version string, until time.Time) probe {
		return probe{endpoint: endpoint, version: api.Version{Version: version, APIVersion: api.APIVersion}, certificate: &x509.Certificate{NotAfter: until}}
	}
	cordoned, suspected, unknown := node("gpu-1"), node("gpu-1", api.Condition{Type: "Suspect", Status: "True", Message: "2 wrong votes"}), broken("gpu-1", "NotReady", "LeaseExpired", "")
	grown := node("gpu-1", api.Condition{Type: "AwaitingApproval", Status: "True", Reason: "CapacityGrew", Message: "cpu 2 → 64"})
	cordoned.Spec.Unschedulable = true
	unknown.Status.Conditions[0].LastTransitionTime = ""
	sameHost, otherHost := node("gpu-1"), node("gpu-10")
	otherHost.Status.Addresses[0].Address = "gpu-1"
	local, besides := node("gpu-1"), node("gpu-10")
	besides.Status.Addresses[0].Address = "gpu-1"
	local.Status.Addresses[1].Address, besides.Status.Addresses[1].Address = "127.0.0.1:1", "127.0.0.1:2"
	for name, c := range map[string]struct {
		got  []Finding
		want string // "" for none
	}{
		"a coordinator's certificate that ends": {
			Facts{probes: []probe{answering("https://c1:8470", "v1", now.Add(time.Hour))}}.judgeCertificates(now),
			"warning: certificates: https://c1:8470: its certificate ends at 2026-03-01T13:00:00Z, in 1h0m0s, and was not renewed => on its host: journalctl",
		},
		"a coordinator's certificate that lasts":    {Facts{probes: []probe{answering("https://c1:8470", "v1", now.Add(9000*time.Hour))}}.judgeCertificates(now), ""},
		"an authority that ends at once":            {authority(time.Minute).judgeCertificates(now), "error: certificates: authority a1: its certificate ends at 2026-03-01T12:01:00Z, and 7 nodes have a certificate by it => muster ca rotate"},
		"an authority that lasts":                   {authority(90000 * time.Hour).judgeCertificates(now), ""},
		"an operator's certificate that has ended":  {operator(-time.Hour, "").judgeCertificates(now), "note: certificates: operator ann: the certificate ended at 2026-03-01T11:00:00Z => muster ca operator ann"},
		"an operator's certificate that is revoked": {operator(-time.Hour, at(-2*time.Hour)).judgeCertificates(now), ""},
		"coordinators of two versions": {
			Facts{client: "v2", probes: []probe{answering("http://c1", "v2", now), answering("http://c2", "v1", now)}}.judgeVersions(now),
			"warning: versions: coordinators: they are of different versions: v1 at http://c2; v2 at http://c1 => bring the older ones to the newest version",
		},
		"a coordinator without an answer has no version": {Facts{client: "v2", probes: []probe{{endpoint: "http://c1", broken: &Finding{}}}}.judgeVersions(now), ""},
		"a node below the cluster's level": {
			Facts{level: &api.FeatureLevel{Level: 2, Newest: 2, Behind: []api.BehindLevel{{Kind: "Node", Name: "gpu-1", Level: 1}}}}.judgeLevel(now),
			"error: versions: gpu-1: the node knows feature levels up to 1, and the cluster has 2 => on its host: install",
		},
		"a level that may rise":                     {Facts{level: &api.FeatureLevel{Level: 1, Newest: 2}}.judgeLevel(now), "note: versions: feature level: the level is 1, and all coordinators and agents know 2 => muster cluster level --raise"},
		"a level before its raise":                  {Facts{level: &api.FeatureLevel{Newest: 1, Behind: []api.BehindLevel{{Kind: "Node", Name: "gpu-1"}}}}.judgeLevel(now), ""},
		"the newest level":                          {Facts{level: &api.FeatureLevel{Level: 1, Newest: 1}}.judgeLevel(now), ""},
		"a coordinator without levels":              {Facts{}.judgeLevel(now), ""},
		"a cordoned node":                           {Facts{nodes: []api.Node{cordoned}}.judgeNodes(now), "note: nodes: gpu-1: the node is cordoned: it takes no new work => muster uncordon gpu-1"},
		"a node that grew":                          {Facts{nodes: []api.Node{grown}}.judgeNodes(now), "warning: nodes: gpu-1: it has more than was approved (CapacityGrew): cpu 2 → 64 => muster describe node gpu-1, then muster node approve gpu-1"},
		"a node that votes wrongly":                 {Facts{nodes: []api.Node{suspected}}.judgeNodes(now), "warning: nodes: gpu-1: it does not answer reservations as it should: 2 wrong votes"},
		"a node that is away since an unknown time": {Facts{nodes: []api.Node{unknown}}.judgeNodes(now), "error: nodes: gpu-1: NotReady since an unknown time (LeaseExpired) => "},
		"two nodes of one host":                     {Facts{nodes: []api.Node{sameHost, otherHost}}.judgeNames(now), "warning: names: gpu-1, gpu-10: 2 nodes have the host name gpu-1: the host was renamed, or its configuration was copied"},
		"nodes of muster dev on one host":           {Facts{nodes: []api.Node{local, besides}}.judgeNames(now), ""},
		"a certificate that has expired": {
			[]Finding{*Options{}.explainUnreachable("https://c1", x509.CertificateInvalidError{Reason: x509.Expired, Cert: &x509.Certificate{NotBefore: now.Add(-time.Hour), NotAfter: now}})},
			"error: certificates: https://c1: the coordinator's certificate is of 2026-03-01T11:00:00Z to 2026-03-01T12:00:00Z, and this host's clock is at ",
		},
		"an error of another sort": {[]Finding{*Options{}.explainUnreachable("https://c1", errors.New("odd"))}, "error: reachability: https://c1: no answer: odd => on that host: systemctl status muster-coordinator"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lines(c.got); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// A note is no fault: doctor ends with 0.
func TestAFolderThatIsNotThereYetIsANote(t *testing.T) {
	dir := t.TempDir()
	path := file(t, dir, "agent.yaml", "nodeID: gpu-8\ndataDir: "+dir+"/data\n", 0o600)
	r, err := LookAtHost(t.Context(), path, []api.Node{}, Options{Patience: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if got := found(r); r.Faults() != 0 || !strings.Contains(got, "note: data folder: "+dir+"/data: it does not exist yet; the program makes it at its first start") {
		t.Errorf("%d faults:\n%s", r.Faults(), got)
	}
}

// Bad files of the host end the look, with the file in the error.
func TestAFileThatCannotBeLookedAt(t *testing.T) {
	dir := t.TempDir()
	large := file(t, dir, "large.yaml", strings.Repeat("#", maxConfig+1), 0o600)
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, want string }{
		"a file of more than the bound": {large, large + ": 1048577 bytes are more than 1048576"},
		"a folder":                      {folder, "read " + folder + ": is a directory"},
		"no file":                       {dir + "/none", "stat " + dir + "/none: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := LookAtHost(context.Background(), c.path, nil, Options{}); err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
