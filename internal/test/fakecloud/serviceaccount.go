// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	// jwtBearer is the grant type with which a Google service account gets a token.
	jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

	// googleScope is the scope of Kubernetes Engine.
	googleScope = "https://www.googleapis.com/auth/cloud-platform"

	// googleEmailScope is the scope with which a token has the account's e-mail address.
	googleEmailScope = "https://www.googleapis.com/auth/userinfo.email"

	// serviceAccountEmail is the name of every service account.
	serviceAccountEmail = "reader@project.iam.gserviceaccount.com"

	// longestAssertion is the longest time for which an assertion may be valid.
	longestAssertion = time.Hour
)

// GoogleKey returns the key file of a Google service account that names a URL as its token endpoint. The endpoint at
// that URL does not know the account.
func GoogleKey(tokenURI string) ([]byte, error) {
	file, _, err := googleKey(tokenURI)
	return file, err
}

// GoogleKey lets a Google service account get tokens at a path, and returns its key file. To get a token, the account
// must present an assertion that is signed with the key, names the account, this endpoint and the scopes of Kubernetes
// Engine, and is valid for an hour at most.
func (e *TokenEndpoint) GoogleKey(path string, token func(context.Context) (string, error)) ([]byte, error) {
	file, public, err := googleKey(e.server.URL + path)
	if err != nil {
		return nil, err
	}
	e.add(tokenAccount{path: path, token: token, verify: func(form url.Values) string {
		if form.Get("grant_type") != jwtBearer {
			return "unsupported_grant_type"
		}
		if problem := verifyAssertion(form.Get("assertion"), e.server.URL+path, public); problem != "" {
			return "invalid_grant: " + problem
		}
		return ""
	}})
	return file, nil
}

func googleKey(tokenURI string) (file []byte, public *rsa.PublicKey, err error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot create a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot encode a key: %w", err)
	}
	file, err = json.Marshal(map[string]string{
		"type": "service_account", "client_email": serviceAccountEmail, "token_uri": tokenURI,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("cannot encode a key file: %w", err)
	}
	return file, &key.PublicKey, nil
}

// verifyAssertion returns what is wrong with an assertion, or "" if nothing is.
func verifyAssertion(assertion, audience string, key *rsa.PublicKey) string {
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 {
		return "the assertion is no JWT"
	}
	var header struct {
		Algorithm string `json:"alg"`
	}
	var claims struct {
		Issuer   string `json:"iss"`
		Audience string `json:"aud"`
		Scope    string `json:"scope"`
		Issued   int64  `json:"iat"`
		Expires  int64  `json:"exp"`
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !decodePart(parts[0], &header) || !decodePart(parts[1], &claims) {
		return "the assertion is no JWT"
	}
	signed := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if header.Algorithm != "RS256" || rsa.VerifyPKCS1v15(key, crypto.SHA256, signed[:], signature) != nil {
		return "the signature is not that of the account's key"
	}
	now, issued, expires := time.Now(), time.Unix(claims.Issued, 0), time.Unix(claims.Expires, 0)
	switch {
	case claims.Issuer != serviceAccountEmail:
		return "the issuer is another account"
	case claims.Audience != audience:
		return "the audience is another endpoint"
	case !slices.Contains(strings.Fields(claims.Scope), googleScope):
		return "the scope is not that of Kubernetes Engine"
	case !slices.Contains(strings.Fields(claims.Scope), googleEmailScope):
		return "without this scope, Kubernetes Engine knows the account by a number alone"
	case issued.After(now) || !expires.After(now) || expires.Sub(issued) > longestAssertion:
		return "the assertion does not count now, or for too long"
	}
	return ""
}

// decodePart decodes a part of a JWT.
func decodePart(part string, into any) bool {
	content, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && json.Unmarshal(content, into) == nil
}
