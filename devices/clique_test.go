package devices_test

import (
	"strings"
	"testing"

	"github.com/musterd/muster/devices"
)

const cluster = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"

func TestCliquesAreValuesOfLabels(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, cluster + ".0": true, cluster + ".4294967295": true,
		cluster: false, cluster + ".": false, cluster + ".-1": false, cluster + ".+1": false, cluster + ".4294967296": false, ".7": false,
		"../../etc.7": false, "a b.7": false, strings.Repeat("a", 64) + ".7": false, "rack.7": false,
	} {
		if got := devices.ValidClique(text); got != want {
			t.Errorf("%q is valid: %t, want %t", text, got, want)
		}
	}
}

func TestTheCliqueOfAHostIsThatOfAllItsDevices(t *testing.T) {
	for name, c := range map[string]struct {
		cliques []string
		want    string
	}{
		"no devices": {nil, ""}, "one": {[]string{"a.1"}, "a.1"}, "the same": {[]string{"a.1", "a.1"}, "a.1"},
		"two": {[]string{"a.1", "a.2"}, ""}, "a device of none": {[]string{"a.1", ""}, ""}, "none": {[]string{"", ""}, ""},
	} {
		inv := &devices.Inventory{}
		for _, clique := range c.cliques {
			inv.Devices = append(inv.Devices, devices.Device{Clique: clique})
		}
		if got := inv.Clique(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
