package service

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"
)

func TestTheNameOfACertificateReadsBack(t *testing.T) {
	c := &x509.Certificate{Raw: []byte("certificate"), Subject: pkix.Name{CommonName: "at-5d1f09c2ab"}}
	id, sum, ok := ParseCertificateName(CertificateName(c))
	if !ok || id != "at-5d1f09c2ab" || sum == ([32]byte{}) {
		t.Errorf("%q, %x, %t", id, sum, ok)
	}
}

func FuzzParseCertificateName(f *testing.F) {
	for _, name := range []string{"", ".", "at-1.zz", "at-5d1f09c2ab.9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "a.b.c"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		id, _, ok := ParseCertificateName(name)
		if !ok && id != "" || ok && len(name) != len(id)+65 {
			t.Errorf("%q is read as %q, %t", name, id, ok)
		}
	})
}
