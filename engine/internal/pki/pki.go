// Package pki keeps the engine's own certificate authority and everything it signs.
package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 365 * 24 * time.Hour
	renewBefore   = 30 * 24 * time.Hour
	// clockSkew dates certificates back, for clients whose clock is a little behind.
	clockSkew = 5 * time.Minute
)

// ServiceIP is the first address of the service network, where pods find the API server.
const ServiceIP = "10.43.0.1"

// leaf says what one certificate is for. The file names are its name with .crt and .key.
type leaf struct {
	name   string
	user   string
	groups []string
	server bool
	hosts  []string
	ips    []string
}

var loopback = []string{"127.0.0.1", "::1"}

var leaves = []leaf{
	{name: "apiserver", user: "kube-apiserver", server: true, ips: append([]string{ServiceIP}, loopback...), hosts: []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}},
	{name: "loopback", user: "podwarden-engine", server: true, ips: loopback, hosts: []string{"localhost"}},
	{name: "kubelet-client", user: "kube-apiserver-kubelet-client"},
	{name: "admin", user: "podwarden:admin", groups: []string{"system:masters"}},
	{name: "kube-controller-manager", user: "system:kube-controller-manager"},
	{name: "kube-scheduler", user: "system:kube-scheduler"},
	{name: "kwok", user: "podwarden:kwok"},
}

// Authority is a certificate authority whose certificates and keys lie in one folder.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Ensure makes what is absent and renews what ends within 30 days of now. A new authority renews everything.
func Ensure(dir string, now time.Time) (*Authority, error) {
	a := &Authority{dir: dir}
	if err := a.ensureAuthority(now); err != nil {
		return nil, fmt.Errorf("certificate authority in %s: %w", dir, err)
	}
	for _, l := range leaves {
		if a.valid(l, now) {
			continue
		}
		if err := a.sign(l, now); err != nil {
			return nil, fmt.Errorf("certificate %s in %s: %w", l.name, dir, err)
		}
	}
	if err := ensureKeyPair(a.Path("service-account.key"), a.Path("service-account.pub")); err != nil {
		return nil, fmt.Errorf("service account key in %s: %w", dir, err)
	}
	return a, nil
}

// Path returns the path of one of the authority's files, such as "ca.crt" or "admin.key".
func (a *Authority) Path(file string) string { return filepath.Join(a.dir, file) }

// Certificate returns the authority's own certificate.
func (a *Authority) Certificate() *x509.Certificate { return a.cert }

func (a *Authority) ensureAuthority(now time.Time) error {
	cert, key, err := readPair(a.Path("ca.crt"), a.Path("ca.key"))
	if err == nil && cert.NotAfter.After(now.Add(renewBefore)) {
		a.cert, a.key = cert, key
		return nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "podwarden-engine-ca"},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	a.cert, err = issue(template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	a.key = key
	return writePair(a.Path("ca.crt"), a.Path("ca.key"), a.cert, key)
}

// valid tells whether the certificate on disk is ours, complete and good for a while.
func (a *Authority) valid(l leaf, now time.Time) bool {
	cert, _, err := readPair(a.Path(l.name+".crt"), a.Path(l.name+".key"))
	if err != nil || cert.CheckSignatureFrom(a.cert) != nil || !cert.NotAfter.After(now.Add(renewBefore)) {
		return false
	}
	for _, host := range append(append([]string{}, l.hosts...), l.ips...) {
		if cert.VerifyHostname(host) != nil {
			return false
		}
	}
	return cert.Subject.CommonName == l.user
}

func (a *Authority) sign(l leaf, now time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	usage := x509.ExtKeyUsageClientAuth
	if l.server {
		usage = x509.ExtKeyUsageServerAuth
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: l.user, Organization: l.groups},
		NotBefore:   now.Add(-clockSkew),
		NotAfter:    now.Add(leafLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{usage},
		DNSNames:    l.hosts,
	}
	for _, ip := range l.ips {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(ip))
	}
	cert, err := issue(template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return err
	}
	return writePair(a.Path(l.name+".crt"), a.Path(l.name+".key"), cert, key)
}

func issue(template, parent *x509.Certificate, public *ecdsa.PublicKey, signer *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func readPair(certPath, keyPath string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	certDER, err := readPEM(certPath)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(certDER)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", certPath, err)
	}
	keyDER, err := readPEM(keyPath)
	if err != nil {
		return nil, nil, err
	}
	key, err := x509.ParseECPrivateKey(keyDER)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", keyPath, err)
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, nil, fmt.Errorf("%s does not belong to %s: remove both to have them made anew", keyPath, certPath)
	}
	return cert, key, nil
}

func readPEM(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("%s is not a PEM file: remove it to have it made anew", path)
	}
	return block.Bytes, nil
}

// writePair writes the key first: a certificate is only ever seen beside its key, or renewed at the next start.
func writePair(certPath, keyPath string, cert *x509.Certificate, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	if err := writePEM(keyPath, "EC PRIVATE KEY", der); err != nil {
		return err
	}
	return writePEM(certPath, "CERTIFICATE", cert.Raw)
}

func writePEM(path, kind string, der []byte) error {
	var buffer bytes.Buffer
	if err := pem.Encode(&buffer, &pem.Block{Type: kind, Bytes: der}); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", buffer.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// ensureKeyPair keeps the key that signs service account tokens. It is never renewed: tokens in use would end.
func ensureKeyPair(keyPath, publicPath string) error {
	if _, err := os.Stat(publicPath); err == nil {
		_, err = os.Stat(keyPath)
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	if err := writePEM(keyPath, "EC PRIVATE KEY", private); err != nil {
		return err
	}
	return writePEM(publicPath, "PUBLIC KEY", public)
}
