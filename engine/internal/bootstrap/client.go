// Package bootstrap talks to the new API server as its administrator: health checks, and the few objects and clean-ups that
// the simulated nodes need before kwok may start.
package bootstrap

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"podwarden.io/engine/internal/pki"
)

// Client verifies servers by the engine's own authority and shows the administrator's certificate.
type Client struct {
	http *http.Client
}

// NewClient reads the certificates of authority.
func NewClient(authority *pki.Authority) (*Client, error) {
	pair, err := tls.LoadX509KeyPair(authority.Path("admin.crt"), authority.Path("admin.key"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.Certificate())
	return &Client{http: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		Proxy:             nil,
		ForceAttemptHTTP2: true,
		IdleConnTimeout:   10 * time.Second,
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	}}}, nil
}

// Healthy returns nil when url answers 200, else what it said.
func (c *Client) Healthy(ctx context.Context, url string) error {
	_, err := c.do(ctx, http.MethodGet, url, "", nil)
	return err
}

// do sends one request and returns the body of a 2xx answer.
func (c *Client) do(ctx context.Context, method, url, contentType string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, url, response.Status, firstLine(content))
	}
	return content, nil
}

func (c *Client) apply(ctx context.Context, url string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	_, err = c.do(ctx, http.MethodPatch, url+"?fieldManager=podwarden-engine&force=true", "application/apply-patch+yaml", body)
	return err
}

func firstLine(content []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(content)), "\n")
	return line[:min(len(line), 300)]
}
