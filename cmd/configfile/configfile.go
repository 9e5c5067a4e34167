// Package configfile reads the daemons' configuration files: strict YAML, with
// errors that name the file, the field and the value. It holds the common parts of both
// daemons' files and decides nothing about their meaning.
package configfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/yamldoc"
)

// maxSize bounds a config file, in bytes.
const maxSize = 1 << 20

// Read reads a file over the defaults that into points to. Unknown fields,
// wrong types and a file of more than 1 MiB are errors that name the file.
func Read(path string, into any) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if info.Size() > maxSize {
		return fmt.Errorf("config %s: %d bytes, more than %d", path, info.Size(), maxSize)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	doc, err := yamldoc.ToJSON(data)
	if err != nil {
		return fmt.Errorf("config %s: %w", path, plain(err))
	}
	if err := CheckKeys(doc, into); err != nil {
		return fmt.Errorf("config %s: %w", path, err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		return fmt.Errorf("config %s: %w", path, plain(err))
	}
	return nil
}

// plain drops the library's prefixes, which say nothing about the file.
func plain(err error) error {
	text := err.Error()
	for _, prefix := range []string{"error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ", "json: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return errors.New(text)
}

// Duration reads "10s" and the like. Other text is kept until Check,
// which knows the field's name.
type Duration struct {
	Value time.Duration
	Bad   string // the text instead of a duration
}

// DurationOf is a default.
func DurationOf(d time.Duration) Duration { return Duration{Value: d} }

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		text = string(data)
	}
	value, err := time.ParseDuration(text)
	if err != nil {
		*d = Duration{Bad: text}
		return nil //nolint:nilerr // Check refuses it, by the field's name
	}
	*d = Duration{Value: value}
	return nil
}

// Check returns the duration if it is one and within low..high.
func (d Duration) Check(field string, low, high time.Duration) (time.Duration, error) {
	switch {
	case d.Bad != "":
		return 0, fmt.Errorf("%s: %q: want a number and a unit, such as \"10s\" or \"1m30s\"", field, d.Bad)
	case d.Value < low || d.Value > high:
		return 0, fmt.Errorf("%s: %s is outside %s..%s", field, d.Value, low, high)
	}
	return d.Value, nil
}

// Scalar reads text or a number as text: a quantity, say. Any other value is kept
// as it was written, for the check of its field to refuse.
type Scalar string

// UnmarshalJSON implements json.Unmarshaler.
func (s *Scalar) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		text = string(data)
	}
	*s = Scalar(text)
	return nil
}

// name are names that work in file names, store keys and gossip tags alike.
var name = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// CheckName checks the name of a node, a coordinator or a cluster.
func CheckName(field, value string) error {
	if !name.MatchString(value) {
		return fmt.Errorf("%s: %q: want 1 to 63 of a-z, 0-9, '-' and '.', with a letter or digit at both ends", field, value)
	}
	return nil
}

// CheckListen checks an address to bind: loopback, port 0 to 65535.
func CheckListen(field, address string) error {
	if err := CheckListenAnywhere(field, address); err != nil {
		return err
	}
	return rpcauth.CheckLoopback(field, address)
}

// CheckRemote checks an address to reach: loopback, port 1 to 65535.
func CheckRemote(field, address string) error {
	if err := CheckRemoteAnywhere(field, address); err != nil {
		return err
	}
	return rpcauth.CheckLoopback(field, address)
}

// CheckListenAnywhere is CheckListen for addresses that TLS protects: any host.
func CheckListenAnywhere(field, address string) error {
	_, err := port(field, address)
	return err
}

// CheckRemoteAnywhere is CheckRemote for addresses that TLS protects: any host.
func CheckRemoteAnywhere(field, address string) error {
	p, err := port(field, address)
	if err != nil {
		return err
	}
	if host, _, err := net.SplitHostPort(address); err != nil || host == "" {
		return fmt.Errorf("%s: %q: want HOST:PORT", field, address)
	}
	if p == 0 {
		return fmt.Errorf("%s: %q: port 0 cannot be reached", field, address)
	}
	return nil
}

// CheckAdvertise checks the IP address that others reach this host at; "" is
// none.
func CheckAdvertise(field, address string) error {
	if address == "" {
		return nil
	}
	if ip, err := netip.ParseAddr(address); err != nil || ip.IsUnspecified() {
		return fmt.Errorf("%s: %q: want an IP address that others can reach", field, address)
	}
	return nil
}

func port(field, address string) (uint64, error) {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0, fmt.Errorf("%s: %q: want HOST:PORT", field, address)
	}
	p, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%s: %q: port %q is outside 0..65535", field, address, text)
	}
	return p, nil
}
