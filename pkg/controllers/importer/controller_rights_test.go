// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// serviceAccount is the one to which config/rbac and config/imports grant rights. The importers of these tests have
// those rights, and no others.
const (
	serviceAccount          = "masthead"
	serviceAccountNamespace = "masthead-system"
)

// asServiceAccount is a configuration with the rights of the service account, whose requests are noted.
func (u *usage) asServiceAccount(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + serviceAccountNamespace + ":" + serviceAccount,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + serviceAccountNamespace, "system:authenticated"},
	}
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return noted{u, next} })
	return c
}

// usage is what the importers requested from their hubs, as RBAC names it.
type usage struct {
	mu   sync.Mutex
	seen map[string]bool
	// requests counts them.
	requests int
}

type noted struct {
	*usage

	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (n noted) RoundTrip(req *http.Request) (*http.Response, error) {
	n.note(req)
	return n.next.RoundTrip(req) //nolint:wrapcheck // The caller's client wraps it.
}

func (u *usage) note(req *http.Request) {
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := resolver.NewRequestInfo(req)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests++
	if err != nil || !info.IsResourceRequest {
		return // This is discovery, which everybody may read.
	}
	resource := info.Resource
	if info.Subresource != "" {
		resource += "/" + info.Subresource
	}
	u.seen[formatGrant(info.Verb, info.APIGroup, resource)] = true
}

func (u *usage) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.requests
}

// formatGrant names a right. Of the two groups that a kind of managed resource can be served in a hub uses one.
func formatGrant(verb, group, resource string) string {
	return verb + " " + resource + "." + strings.Replace(group, ".m.upbound.io", ".upbound.io", 1)
}

// unshown are the rights of config/imports that the importer uses in no test of this package, and why it needs them.
func unshown() map[string]string {
	return map[string]string{
		formatGrant("create", "fleet.masthead.dev", "clusterimports/objects"): "the admission policies ask for it; nothing serves it",
		formatGrant("get", "apiextensions.crossplane.io", "managedresourcedefinitions"): "it is requested only in hubs with Crossplane's definitions, " +
			"which lookManaged names in its refusal",
	}
}

// shows says whether a right was used. An informer lists where the API server cannot stream the existing objects.
func (u *usage) shows(granted string) bool {
	list, isList := strings.CutPrefix(granted, "list ")
	return u.seen[granted] || isList && u.seen["watch "+list]
}

// tokenRights are those to ServiceAccounts of the hub and to their tokens. The owner of a namespace grants them, for
// one ServiceAccount.
func tokenRights() map[string]bool {
	return map[string]bool{"get serviceaccounts.": true, "create serviceaccounts/token.": true}
}

// rightsAreMinimal compares what the importers used with what config/imports grants: nothing that they need is missing,
// and nothing is granted that no test showed.
func (u *usage) rightsAreMinimal() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	imports, err := grants("../../../config/imports/*")
	if err != nil {
		return err
	}
	all, err := grants("../../../config/rbac")
	if err != nil {
		return err
	}
	maps.Copy(all, imports)
	all[formatGrant("create", "authorization.k8s.io", "selfsubjectaccessreviews")] = true // Everybody may ask that.
	maps.Copy(all, tokenRights())
	var wrong []error
	for _, used := range slices.Sorted(maps.Keys(u.seen)) {
		if !all[used] {
			wrong = append(wrong, fmt.Errorf("the importer uses a right that neither config/rbac nor config/imports grants: %s", used))
		}
	}
	if flag.Lookup("test.run").Value.String() != "" {
		return errors.Join(wrong...) // Without all tests less is used.
	}
	for _, granted := range slices.Sorted(maps.Keys(imports)) {
		if why := unshown()[granted]; !u.shows(granted) && why == "" {
			wrong = append(wrong, fmt.Errorf("no test showed the use of a right that config/imports grants: %s", granted))
		} else if u.shows(granted) && why != "" {
			wrong = append(wrong, fmt.Errorf("a right is used, although it is said that no test shows it: %s", granted))
		}
	}
	return errors.Join(wrong...)
}

// grants are the rights of all ClusterRoles in a folder, or in folders that match.
func grants(dir string) (map[string]bool, error) {
	roles, err := readRoles(dir)
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for _, role := range roles {
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						all[formatGrant(verb, group, resource)] = true
					}
				}
			}
		}
	}
	return all, nil
}

// readRoles are the ClusterRoles in a folder.
func readRoles(dir string) ([]*rbacv1.ClusterRole, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no files in %s: %w", dir, err)
	}
	var all []*rbacv1.ClusterRole
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read rights: %w", err)
		}
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			role := &rbacv1.ClusterRole{}
			if err := yaml.Unmarshal([]byte(document), role); err != nil {
				return nil, fmt.Errorf("cannot read %s: %w", file, err)
			}
			if role.Kind == "ClusterRole" {
				all = append(all, role)
			}
		}
	}
	return all, nil
}

// grant gives the service account the rights of config/rbac and config/imports.
func (w *world) grant(ctx context.Context) error {
	for _, dir := range []string{"../../../config/rbac", "../../../config/imports/*"} {
		roles, err := readRoles(dir)
		if err != nil {
			return err
		}
		for _, role := range roles {
			binding := &rbacv1.ClusterRoleBinding{
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: serviceAccountNamespace, Name: serviceAccount}},
			}
			binding.Name = role.Name
			if err := errors.Join(w.Client.Create(ctx, role), w.Client.Create(ctx, binding)); err != nil {
				return fmt.Errorf("cannot grant the rights of %s: %w", dir, err)
			}
		}
	}
	return nil
}
