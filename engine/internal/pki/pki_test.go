package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

var now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func ensure(t *testing.T, dir string, at time.Time) *Authority {
	t.Helper()
	a, err := Ensure(dir, at)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = string(content)
	}
	return all
}

func changed(before, after map[string]string) (names []string) {
	for name := range after {
		if before[name] != after[name] {
			names = append(names, name)
		}
	}
	return names
}

func TestCertificatesVerify(t *testing.T) {
	a := ensure(t, t.TempDir(), now)
	roots := x509.NewCertPool()
	roots.AddCert(a.Certificate())
	for _, l := range leaves {
		cert, _, err := readPair(a.Path(l.name+".crt"), a.Path(l.name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		right, wrong := x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth
		if l.server {
			right, wrong = wrong, right
		}
		verify := x509.VerifyOptions{Roots: roots, CurrentTime: now.Add(time.Hour), KeyUsages: []x509.ExtKeyUsage{right}}
		if _, err := cert.Verify(verify); err != nil {
			t.Errorf("%s: %v", l.name, err)
		}
		verify.KeyUsages = []x509.ExtKeyUsage{wrong}
		if _, err := cert.Verify(verify); err == nil {
			t.Errorf("%s is good for client and server at once", l.name)
		}
		for _, host := range l.hosts {
			if err := cert.VerifyHostname(host); err != nil {
				t.Errorf("%s: %v", l.name, err)
			}
		}
	}
}

func TestOnlyTheAdministratorIsMaster(t *testing.T) {
	a := ensure(t, t.TempDir(), now)
	for _, l := range leaves {
		cert, _, err := readPair(a.Path(l.name+".crt"), a.Path(l.name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		master := len(cert.Subject.Organization) == 1 && cert.Subject.Organization[0] == "system:masters"
		if master != (l.name == "admin") {
			t.Errorf("%s: groups %v", l.name, cert.Subject.Organization)
		}
	}
}

func TestNothingChangesWhileAllIsGood(t *testing.T) {
	dir := t.TempDir()
	ensure(t, dir, now)
	before := contents(t, dir)
	ensure(t, dir, now.Add(300*24*time.Hour))
	if names := changed(before, contents(t, dir)); len(names) != 0 {
		t.Errorf("changed: %v", names)
	}
}

func TestLeavesAreRenewedBeforeTheyEnd(t *testing.T) {
	dir := t.TempDir()
	ensure(t, dir, now)
	before := contents(t, dir)
	later := now.Add(340 * 24 * time.Hour)
	a := ensure(t, dir, later)
	if got, want := len(changed(before, contents(t, dir))), 2*len(leaves); got != want {
		t.Errorf("%d files changed, want %d: all leaves, but not the authority and the service account key", got, want)
	}
	cert, _, err := readPair(a.Path("admin.crt"), a.Path("admin.key"))
	if err != nil || !cert.NotAfter.After(later.Add(360*24*time.Hour)) {
		t.Errorf("admin ends %v (%v)", cert.NotAfter, err)
	}
}

func TestANewAuthoritySignsEverythingAnew(t *testing.T) {
	dir := t.TempDir()
	ensure(t, dir, now)
	before := contents(t, dir)
	a := ensure(t, dir, now.Add(authorityLife))
	if got, want := len(changed(before, contents(t, dir))), 2*len(leaves)+2; got != want {
		t.Errorf("%d files changed, want %d", got, want)
	}
	if cert, _, _ := readPair(a.Path("apiserver.crt"), a.Path("apiserver.key")); cert.CheckSignatureFrom(a.Certificate()) != nil {
		t.Error("the server's certificate is not the new authority's")
	}
}

func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	a := ensure(t, dir, now)
	if err := os.WriteFile(a.Path("admin.crt"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	ensure(t, dir, now) // a leaf is simply made anew
	if _, _, err := readPair(a.Path("admin.crt"), a.Path("admin.key")); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(a.Path("ca.key"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Ensure(dir, now); err == nil {
		t.Error("a damaged authority was replaced without a word: all clients would be locked out")
	}
}

func TestKeysAreClosedToOthers(t *testing.T) {
	dir := t.TempDir()
	ensure(t, dir, now)
	for name := range contents(t, dir) {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
}

func TestKubeconfigHasAllInside(t *testing.T) {
	a := ensure(t, t.TempDir(), now)
	config, err := a.Kubeconfig("admin", "https://127.0.0.1:6443")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(config, []byte("server: https://127.0.0.1:6443\n")) {
		t.Error("no server")
	}
	for field, file := range map[string]string{
		"certificate-authority-data": "ca.crt", "client-certificate-data": "admin.crt", "client-key-data": "admin.key",
	} {
		found := regexp.MustCompile(field + `: (\S+)`).FindSubmatch(config)
		if found == nil {
			t.Fatalf("no %s", field)
		}
		decoded, err := base64.StdEncoding.DecodeString(string(found[1]))
		want, _ := os.ReadFile(a.Path(file))
		if err != nil || !bytes.Equal(decoded, want) {
			t.Errorf("%s is not %s (%v)", field, file, err)
		}
	}
	if _, err := a.Kubeconfig("nobody", ""); err == nil {
		t.Error("a kubeconfig for nobody")
	}
}
