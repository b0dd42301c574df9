// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package tokentest

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

const (
	// PoolProvider is the audience of the tokens that are exchanged.
	PoolProvider = "//iam.googleapis.com/projects/123456789/locations/global/workloadIdentityPools/hubs/providers/europe"

	// HubSecret is the token of the ServiceAccount, which only the token endpoint may see.
	HubSecret = "the-token-of-the-hub"

	// Exchanged is what Google's endpoint answers.
	Exchanged = `{"access_token":"federated","issued_token_type":"urn:ietf:params:oauth:token-type:access_token",` +
		`"token_type":"Bearer","expires_in":3600}`

	// RequestsHelp is before the counts of requests for tokens.
	RequestsHelp = "# HELP masthead_import_token_requests_total Requests for tokens of imported clusters: of the sources " +
		"that create them, and of ServiceAccounts. Refused: the endpoint returns an error. Failed: it cannot be reached, or returns no token.\n" +
		"# TYPE masthead_import_token_requests_total counter\n"
)

// Cloud answers at the paths of Google's and Entra ID's endpoints, each by what it is given.
type Cloud struct {
	STS, IAM, Entra http.HandlerFunc

	// Requests counts the requests.
	Requests atomic.Int64
}

// ServeHTTP implements http.Handler.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.Requests.Add(1)
	switch {
	case r.URL.Path == "/v1/token" && c.STS != nil:
		c.STS(w, r)
	case strings.HasPrefix(r.URL.Path, "/v1/projects/-/serviceAccounts/") && c.IAM != nil:
		c.IAM(w, r)
	case strings.HasSuffix(r.URL.Path, "/oauth2/v2.0/token") && c.Entra != nil:
		c.Entra(w, r)
	default:
		http.NotFound(w, r)
	}
}

// Answering answers each request the same.
func Answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}
}

// Identity is one whose tokens a server exchanges, for those of a Google service account if one is named.
func Identity(server *httptest.Server, email string) *fleetv1alpha1.GoogleWorkloadIdentity {
	return &fleetv1alpha1.GoogleWorkloadIdentity{
		ServiceAccountName: "shop-importer", Audience: PoolProvider, ServiceAccountEmail: email,
		STSEndpoint: fleetv1alpha1.HTTPSURL(server.URL + "/v1/token"), CredentialsEndpoint: fleetv1alpha1.HTTPSURL(server.URL),
	}
}

// Server answers each request for a token by what answer says. It returns its authority, too.
func Server(t *testing.T, answer http.HandlerFunc) (*httptest.Server, []byte) {
	t.Helper()
	s := httptest.NewTLSServer(answer)
	t.Cleanup(s.Close)
	return s, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}
