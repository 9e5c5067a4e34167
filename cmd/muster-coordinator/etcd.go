package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/musterd/muster/cmd/configfile"
	"github.com/musterd/muster/coordinator/store/etcd"
)

// EtcdConfig has the keys of the config file about an external etcd.
type EtcdConfig struct {
	EtcdEndpoints      []string            `json:"etcdEndpoints"`
	EtcdTLS            etcdTLSConfig       `json:"etcdTLS"`
	EtcdUsername       string              `json:"etcdUsername"`
	EtcdPasswordFile   string              `json:"etcdPasswordFile"`
	EtcdDialTimeout    configfile.Duration `json:"etcdDialTimeout"`
	EtcdRequestTimeout configfile.Duration `json:"etcdRequestTimeout"`
}

type etcdTLSConfig struct {
	CAFile     string `json:"caFile"`
	CertFile   string `json:"certFile"`
	KeyFile    string `json:"keyFile"`
	ServerName string `json:"serverName"`
}

// requestShare is the part of the lease that one request may go unanswered
// unless the file says otherwise, and mostRequestShare the most: a leader must have the
// time to ask another member before half its lease has passed.
const (
	requestShare     = 5
	mostRequestShare = 4
)

// etcdFlags declares the flags of EtcdConfig.
func etcdFlags(f *pflag.FlagSet) {
	f.StringSlice("etcd-endpoints", nil, "external etcd; none means the embedded one")
	f.String("etcd-ca-file", "", "authority of etcd's certificates, PEM (default: what the host trusts)")
	f.String("etcd-cert-file", "", "this coordinator's certificate for etcd, PEM")
	f.String("etcd-key-file", "", "its key, PEM")
	f.String("etcd-server-name", "", "name in etcd's certificates (default: the endpoint's host)")
	f.String("etcd-username", "", "user of etcd")
	f.String("etcd-password-file", "", "file with the user's password, mode 0600")
}

// override puts the flags that were given on top.
func (c *EtcdConfig) override(f *pflag.FlagSet) {
	for name, target := range map[string]*string{
		"etcd-ca-file": &c.EtcdTLS.CAFile, "etcd-cert-file": &c.EtcdTLS.CertFile, "etcd-key-file": &c.EtcdTLS.KeyFile,
		"etcd-server-name": &c.EtcdTLS.ServerName, "etcd-username": &c.EtcdUsername, "etcd-password-file": &c.EtcdPasswordFile,
	} {
		if f.Changed(name) {
			*target, _ = f.GetString(name)
		}
	}
	if f.Changed("etcd-endpoints") {
		c.EtcdEndpoints, _ = f.GetStringSlice("etcd-endpoints")
	}
}

// check validates the fields and reads the password. The certificates' files
// are read when the store is opened, and again whenever they change.
func (c EtcdConfig) check(leaseTTL time.Duration) (etcd.Config, error) {
	var errs []error
	keep := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	secure := false
	for i, e := range c.EtcdEndpoints {
		keep(checkEndpoint(fmt.Sprintf("etcdEndpoints[%d]", i), e, c.EtcdEndpoints[0]))
		secure = secure || strings.HasPrefix(e, "https://")
	}
	files := []struct{ field, value string }{
		{"etcdTLS.caFile", c.EtcdTLS.CAFile},
		{"etcdTLS.certFile", c.EtcdTLS.CertFile},
		{"etcdTLS.keyFile", c.EtcdTLS.KeyFile},
		{"etcdTLS.serverName", c.EtcdTLS.ServerName},
		{"etcdUsername", c.EtcdUsername},
		{"etcdPasswordFile", c.EtcdPasswordFile},
	}
	for i, f := range files {
		switch {
		case f.value == "":
		case len(c.EtcdEndpoints) == 0:
			keep(fmt.Errorf("%s: %q: has no effect without etcdEndpoints", f.field, f.value))
		case i < 4 && !secure:
			keep(fmt.Errorf("%s: %q: has no effect on the plain etcdEndpoints[0] %q; write it as https://…", f.field, f.value, c.EtcdEndpoints[0]))
		case f.field != "etcdTLS.serverName" && f.field != "etcdUsername" && !filepath.IsAbs(f.value):
			keep(fmt.Errorf("%s: %q: want an absolute path", f.field, f.value))
		}
	}
	if (c.EtcdTLS.CertFile == "") != (c.EtcdTLS.KeyFile == "") {
		keep(fmt.Errorf("etcdTLS.certFile: %q, etcdTLS.keyFile: %q: want both or none", c.EtcdTLS.CertFile, c.EtcdTLS.KeyFile))
	}
	out := etcd.Config{
		Endpoints: c.EtcdEndpoints, TLS: etcd.TLS(c.EtcdTLS), Username: c.EtcdUsername, PasswordFile: c.EtcdPasswordFile,
		RequestTimeout: leaseTTL / requestShare,
	}
	if (c.EtcdUsername == "") != (c.EtcdPasswordFile == "") {
		keep(fmt.Errorf("etcdUsername: %q, etcdPasswordFile: %q: want both or none", c.EtcdUsername, c.EtcdPasswordFile))
	} else if c.EtcdUsername != "" {
		password, err := readPassword(c.EtcdPasswordFile)
		if err != nil {
			keep(fmt.Errorf("etcdPasswordFile: %w", err))
		}
		out.Password = password
	}
	var err error
	out.DialTimeout, err = c.EtcdDialTimeout.Check("etcdDialTimeout", 100*time.Millisecond, time.Minute)
	keep(err)
	if c.EtcdRequestTimeout != (configfile.Duration{}) && leaseTTL > 0 {
		out.RequestTimeout, err = c.EtcdRequestTimeout.Check("etcdRequestTimeout", 50*time.Millisecond, leaseTTL/mostRequestShare)
		if err != nil {
			keep(fmt.Errorf("%w, a quarter of leaseTTL", err))
		}
	}
	return out, errors.Join(errs...)
}

// checkEndpoint wants every endpoint to be like the first: https, or plain and
// on loopback.
func checkEndpoint(field, endpoint, first string) error {
	secure := strings.HasPrefix(endpoint, "https://")
	if secure != strings.HasPrefix(first, "https://") {
		return fmt.Errorf("%s: %q: https and plain endpoints cannot be mixed (the first is %q)", field, endpoint, first)
	}
	if secure {
		return configfile.CheckRemoteAnywhere(field, strings.TrimSuffix(strings.TrimPrefix(endpoint, "https://"), "/"))
	}
	return configfile.CheckRemote(field, strings.TrimSuffix(strings.TrimPrefix(endpoint, "http://"), "/"))
}

// mostPassword is far beyond any password.
const mostPassword = 4096

// readPassword reads a file that no other user may read. A line feed at its end
// is not part of the password.
func readPassword(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return "", fmt.Errorf("%s: mode %04o lets others use it; run: chmod 0600 %s", path, mode, path)
	}
	data, err := io.ReadAll(io.LimitReader(f, mostPassword+1))
	if err != nil {
		return "", err
	}
	password := strings.TrimRight(string(data), "\r\n")
	if password == "" || len(data) > mostPassword {
		return "", fmt.Errorf("%s: %d bytes: want a password of 1 to %d", path, len(data), mostPassword)
	}
	return password, nil
}
