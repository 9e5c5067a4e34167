package etcdcluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates for a test.
type Authority struct {
	// File has its own certificate, PEM.
	File string

	dir    string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
	client TLSFiles // an administrator's, made once
}

// Leaf says what a certificate is for. Without times it is good for an hour.
type Leaf struct {
	Name                string
	Hosts               []string // addresses and names; for servers
	NotBefore, NotAfter time.Time
}

// NewAuthority makes an authority whose files are in dir.
func NewAuthority(t testing.TB, dir string) *Authority {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "etcd test authority"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := &Authority{File: filepath.Join(dir, "ca.pem"), dir: dir, cert: cert, key: key, serial: 1}
	writePEM(t, a.File, "CERTIFICATE", der)
	return a
}

// Issue makes a certificate for servers and clients, and returns its files.
func (a *Authority) Issue(t testing.TB, l Leaf) (certFile, keyFile string) {
	t.Helper()
	a.serial++
	base := filepath.Join(a.dir, fmt.Sprintf("%s-%d", l.Name, a.serial))
	a.IssueTo(t, l, base+".pem", base+"-key.pem")
	return base + ".pem", base + "-key.pem"
}

// IssueTo is Issue into files of the caller's choice, which are replaced.
func (a *Authority) IssueTo(t testing.TB, l Leaf, certFile, keyFile string) {
	t.Helper()
	a.serial++
	if l.NotBefore.IsZero() {
		l.NotBefore = time.Now().Add(-time.Hour)
	}
	if l.NotAfter.IsZero() {
		l.NotAfter = time.Now().Add(time.Hour)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: l.Name}, NotBefore: l.NotBefore, NotAfter: l.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range l.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, keyFile, "PRIVATE KEY", keyDER)
	writePEM(t, certFile, "CERTIFICATE", der)
}

// member returns the certificate of a member, made on its first start.
func (a *Authority) member(t testing.TB, name, host string) (certFile, keyFile string) {
	t.Helper()
	certFile, keyFile = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+"-key.pem")
	if _, err := os.Stat(certFile); err != nil {
		// Peers check the address that a connection comes from too.
		a.IssueTo(t, Leaf{Name: name, Hosts: []string{host, "127.0.0.1"}}, certFile, keyFile)
	}
	return certFile, keyFile
}

// admin returns the files of the test's own clients.
func (a *Authority) admin(t testing.TB) TLSFiles {
	t.Helper()
	if a.client == (TLSFiles{}) {
		cert, key := a.Issue(t, Leaf{Name: "admin"})
		a.client = TLSFiles{CAFile: a.File, CertFile: cert, KeyFile: key}
	}
	return a.client
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// writePEM replaces a file at once, as rotation should.
func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	temporary := path + ".new"
	if err := os.WriteFile(temporary, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temporary, path); err != nil {
		t.Fatal(err)
	}
}
