// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// identifier is a text of a grammar. What is not is reported and not looked up.
func (b block) identifier(field string, grammar *regexp.Regexp) string {
	id := b.text(field)
	if id != "" && !grammar.MatchString(id) {
		b.note(field, id, "The value is not an identifier of the cloud")
		return ""
	}
	return id
}

func (b block) identifiers(field string, grammar *regexp.Regexp) []string {
	return slices.DeleteFunc(b.texts(field, maxListed), func(id string) bool {
		if grammar.MatchString(id) {
			return false
		}
		b.note(field, id, "The value is not an identifier of the cloud")
		return true
	})
}

var releasePrefix = regexp.MustCompile(`^v?(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})(?:[-+].*)?$`)

// kubeletVersion is the version of Kubernetes in a release, as vX.Y.Z: "1.31.3-20250103" and "v1.31.3-eks-7f9249a" are
// v1.31.3. Empty means that it has none.
func kubeletVersion(release string) string {
	m := releasePrefix.FindStringSubmatch(release)
	if m == nil || len(release) > maxText {
		return ""
	}
	return "v" + m[1] + "." + m[2] + "." + m[3]
}

// parseEndpoint reads "https://host", "https://host:port" or a bare host. The host is a DNS name or an address.
func parseEndpoint(raw string) (Endpoint, error) {
	if raw == "" {
		return Endpoint{}, ErrNotObserved
	}
	if !strings.Contains(raw, "://") {
		if strings.Count(raw, ":") > 1 && !strings.HasPrefix(raw, "[") {
			raw = "[" + raw + "]"
		}
		raw = "https://" + raw
	}
	u, err := url.Parse(raw)
	if err != nil || !isOrigin(u) || !isHost(u.Hostname()) {
		return Endpoint{}, fmt.Errorf("cannot read the endpoint %q: not the address of an API server", clean(raw))
	}
	e := Endpoint{Host: u.Hostname(), Port: 443}
	if p := u.Port(); p != "" {
		port, err := strconv.ParseUint(p, 10, 16)
		if err != nil || port == 0 {
			return Endpoint{}, fmt.Errorf("cannot read the endpoint %q: not a port", clean(raw))
		}
		e.Port = int32(port)
	}
	return e, nil
}

// isOrigin reports whether an HTTPS URL has nothing but a host and a port.
func isOrigin(u *url.URL) bool {
	return u.Scheme == "https" && u.User == nil && (u.Path == "" || u.Path == "/") && u.RawQuery == "" && u.Fragment == ""
}

var dnsName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*\.?$`)

func isHost(host string) bool {
	return len(host) <= 253 && (dnsName.MatchString(host) || net.ParseIP(host) != nil)
}

// certificate is base64 of what looks like PEM, of a bounded size. The field is longer than other texts may be.
func (b block) certificate(in block, field string) string {
	value, found := in.get(field)
	if !found {
		return ""
	}
	const most = 64 << 10
	s, _ := value.(string)
	pem, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(s) > most || !strings.Contains(string(pem[:min(len(pem), most)]), "-----BEGIN CERTIFICATE-----") {
		in.note(field, "", "The value is not a certificate in base64")
		return ""
	}
	return s
}

func (b block) cidr(field, s string) string {
	if s == "" {
		return ""
	}
	if _, _, err := net.ParseCIDR(s); err != nil {
		b.note(field, s, "The value is not a CIDR block")
		return ""
	}
	return s
}

// labels are the entries that are valid labels of Nodes.
func (b block) labels(field string) map[string]string {
	out := map[string]string{}
	pairs := b.pairs(field, maxLabels)
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		value := pairs[key]
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			b.note(field, key+"="+value, "The entry is not a label of Kubernetes")
			continue
		}
		out[key] = value
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// effects are those of Kubernetes by the names that clouds give them.
var effects = map[string]string{
	"NO_SCHEDULE": "NoSchedule", "NO_EXECUTE": "NoExecute", "PREFER_NO_SCHEDULE": "PreferNoSchedule",
	"NoSchedule": "NoSchedule", "NoExecute": "NoExecute", "PreferNoSchedule": "PreferNoSchedule",
}

// taint adds a taint. One that is not valid is reported: a taint that is left out silently would be a wrong answer.
func (b block) taint(into []Taint, key, value, effect string) []Taint {
	known, ok := effects[effect]
	if !ok || len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
		b.note("taint", fmt.Sprintf("%s=%s:%s", key, value, effect), "The entry is not a taint of Kubernetes")
		return into
	}
	return append(into, Taint{Key: key, Value: value, Effect: known})
}

// parseTaints reads a list of "key=value:effect" and "key:effect".
func (b block) parseTaints(field string) (out []Taint) {
	for _, s := range b.texts(field, maxTaints) {
		pair, effect := s, ""
		if at := strings.LastIndex(s, ":"); at >= 0 {
			pair, effect = s[:at], s[at+1:]
		}
		key, value, _ := strings.Cut(pair, "=")
		out = b.taint(out, key, value, effect)
	}
	return out
}
