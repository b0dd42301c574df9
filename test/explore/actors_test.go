// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/test/explore/apiserver"
)

const (
	userFinalizer       = "example.org/user"
	crossplaneFinalizer = "finalizer.apiextensions.crossplane.io"
	secretName          = "db-connection"
)

// option is a possible next step. Options of greater weight are chosen more often.
type option struct {
	label  string
	weight int
	do     func()
}

// Weights. Most steps let the system proceed, so that what others do meets it in the middle of something. A walk can be
// without those that are occasional or rare.
const (
	often      = 40
	usual      = 8
	steady     = 3
	occasional = 2
	rare       = 1
)

// actors returns what users, administrators, Crossplane and hostile tenants can do now.
func (w *world) actors() []option {
	var out []option
	for _, c := range w.clusters {
		for _, team := range c.teams {
			out = append(out, w.users(c, team)...)
			if w.runs.references {
				out = append(out, weighted(steady, w.referrers(c, team))...)
			}
		}
		if w.runs.discovery {
			out = append(out, weighted(rare, w.copies(c))...)
		}
		if w.runs.references {
			out = append(out, weighted(rare, w.lifecycle(c.server, "user of "+c.identifier, crds, grantCRD()))...)
		}
	}
	if w.runs.discovery {
		out = append(out, weighted(steady, w.offers())...)
	}
	if w.runs.references {
		out = append(out, weighted(rare, w.resolves())...)
	}
	out = append(out, w.administrators()...)
	for _, obj := range w.hub.List(claims) {
		out = append(out, w.crossplane(obj)...)
	}
	return append(append(out, w.rotate()...), w.strays()...)
}

// users returns what the owner of a namespace of a workload cluster can do.
func (w *world) users(c *workload, team string) []option {
	who := "user of " + c.identifier + "/" + team
	claimsPath := path(claims, "v1alpha1", team, "")
	claimPath := claimsPath + "/" + claimName
	annotate := func(name string, value any) func() {
		return func() {
			w.patch(c.server, "user", claimPath, map[string]any{"metadata": map[string]any{"annotations": map[string]any{name: value}}})
		}
	}
	ns := c.server.Get(key(namespaces, "", team))
	claim := c.server.Get(key(claims, team, claimName))
	switch {
	case ns == nil:
		return []option{{who + " creates the namespace", usual, func() {
			w.request(c.server, "user", http.MethodPost, path(namespaces, "v1", "", ""), "application/json", namespace(team).Object)
		}}}
	case ns.GetDeletionTimestamp() != nil:
		return nil
	}
	out := []option{{who + " deletes the namespace", rare, func() {
		w.request(c.server, "user", http.MethodDelete, path(namespaces, "v1", "", team), "application/json", nil)
	}}}
	out = append(out, w.retargets(c, who, ns)...)
	out = append(out, w.ownSecret(c, who, team)...)
	if claim == nil {
		if !slices.Contains(c.server.Resources(), claims) {
			return out
		}
		return append(out, option{who + " creates the claim", usual, func() {
			obj := object(claimGroup+"/v1alpha1", claimKind, team, claimName, map[string]any{
				"version": "1", "writeConnectionSecretToRef": map[string]any{"name": secretName},
			})
			w.request(c.server, "user", http.MethodPost, claimsPath, "application/json", obj.Object)
		}})
	}
	version, _, _ := unstructured.NestedString(claim.Object, "spec", "version")
	out = append(out,
		option{who + " edits the claim", occasional, func() {
			w.patch(c.server, "user", claimPath, map[string]any{"spec": map[string]any{"version": version + "1"}})
		}},
		option{who + " removes the finalizers", rare, func() {
			w.patch(c.server, "user", claimPath, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		}},
		option{who + " forges the record", rare, annotate(fleetv1alpha1.HubObjectAnnotation, w.forgedRecord(claim))},
		option{who + " removes the record", rare, func() {
			w.patch(c.server, "user", claimPath, map[string]any{"metadata": map[string]any{
				"annotations": map[string]any{fleetv1alpha1.HubObjectAnnotation: nil},
			}})
		}},
	)
	edited := claim.DeepCopy()
	setFinalizers := func() {
		w.patch(c.server, "user", claimPath, map[string]any{"metadata": map[string]any{"finalizers": edited.GetFinalizers()}})
	}
	if controllerutil.RemoveFinalizer(edited, userFinalizer) {
		out = append(out, option{who + " removes their own finalizer", occasional, setFinalizers})
	} else if claim.GetDeletionTimestamp() == nil && controllerutil.AddFinalizer(edited, userFinalizer) {
		out = append(out, option{who + " adds a finalizer", rare, setFinalizers})
	}
	if isPaused(claim) {
		out = append(out, option{who + " resumes the claim", occasional, annotate(fleetv1alpha1.PausedAnnotation, nil)})
	} else {
		out = append(out, option{who + " pauses the claim", rare, annotate(fleetv1alpha1.PausedAnnotation, fleetv1alpha1.PausedAnnotationTrue)})
	}
	if claim.GetAnnotations()[fleetv1alpha1.AdoptAnnotation] == "" {
		out = append(out, option{who + " adopts what a former claim left", rare, annotate(fleetv1alpha1.AdoptAnnotation, "true")})
	}
	if claim.GetAnnotations()[fleetv1alpha1.DeletionPolicyAnnotation] == "" {
		out = append(out, option{who + " keeps the object", rare, annotate(fleetv1alpha1.DeletionPolicyAnnotation, "Orphan")})
	}
	if claim.GetDeletionTimestamp() == nil {
		out = append(out, option{who + " deletes the claim", usual, func() {
			w.request(c.server, "user", http.MethodDelete, claimPath, "application/json", nil)
		}})
		if w.checker.claims[claim.GetUID()].justProtected {
			out = append(out, option{who + " deletes the claim before its finalizer counts", usual, func() {
				w.checker.slips(c, claim.GetUID())
				c.server.Remove(key(claims, team, claimName))
			}})
		}
	}
	if propagation.AgentSynced(claim)["reason"] == fleetv1alpha1.ReasonHubObjectDeleted {
		record, _ := ownership.GetRecord(claim)
		out = append(out, option{who + " consents to recreation", occasional, annotate(fleetv1alpha1.RecreateAnnotation, record.Consent(claim))})
	}
	return out
}

// forgedRecord is a claim's record of an object that another claim may have.
func (w *world) forgedRecord(claim *unstructured.Unstructured) string {
	uid := types.UID("")
	if obj := w.hub.Get(key(claims, movedName, claimName)); obj != nil {
		uid = obj.GetUID()
	}
	return fmt.Sprintf("%s/%s/%s", movedName, uid, claim.GetUID())
}

func isPaused(claim *unstructured.Unstructured) bool {
	return claim.GetAnnotations()[fleetv1alpha1.PausedAnnotation] == fleetv1alpha1.PausedAnnotationTrue
}

// ownSecret returns what the owner of a namespace can do with a Secret of their own that has the name of a claim's.
func (w *world) ownSecret(c *workload, who, team string) []option {
	p := path(secrets, "v1", team, "")
	switch c.server.Get(key(secrets, team, secretName)) {
	case nil:
		s := object("v1", "Secret", team, secretName, nil)
		s.Object["data"] = map[string]any{"own": "eQ=="}
		return []option{{who + " creates their own Secret", rare, func() {
			w.request(c.server, "user", http.MethodPost, p, "application/json", s.Object)
		}}}
	default:
		return []option{{who + " deletes the Secret", rare, func() {
			w.request(c.server, "user", http.MethodDelete, p+"/"+secretName, "application/json", nil)
		}}}
	}
}

// retargets returns what the owner of a namespace can do to move its claims.
func (w *world) retargets(c *workload, who string, ns *unstructured.Unstructured) []option {
	annotate := func(name string, value any) func() {
		return func() {
			w.patch(c.server, "user", path(namespaces, "v1", "", ns.GetName()), map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{name: value}},
			})
		}
	}
	a := ns.GetAnnotations()
	var out []option
	if a[fleetv1alpha1.TargetNamespaceAnnotation] == "" {
		out = append(out, option{who + " chooses another target", rare, annotate(fleetv1alpha1.TargetNamespaceAnnotation, movedName)})
	} else {
		out = append(out, option{who + " chooses the first target", rare, annotate(fleetv1alpha1.TargetNamespaceAnnotation, nil)})
	}
	if a[fleetv1alpha1.OnTargetChangeAnnotation] == "" {
		out = append(out, option{who + " lets objects move", rare,
			annotate(fleetv1alpha1.OnTargetChangeAnnotation, fleetv1alpha1.OnTargetChangeRecreate)})
	}
	return out
}

// administrators returns what the owners of the hub can do.
func (w *world) administrators() []option {
	var out []option
	for _, obj := range w.hub.List(claims) {
		out = append(out, option{"administrator removes " + obj.GetNamespace() + "/" + obj.GetName() + " by force", rare, func() {
			w.hub.Remove(key(claims, obj.GetNamespace(), obj.GetName()))
		}})
		if obj.GetDeletionTimestamp() == nil {
			p := path(claims, "v1alpha1", obj.GetNamespace(), obj.GetName())
			out = append(out, option{"administrator deletes " + obj.GetNamespace() + "/" + obj.GetName(), rare, func() {
				w.request(w.hub.Server, "administrator", http.MethodDelete, p, "application/json", nil)
			}})
		}
	}
	if c := w.hub.Get(key(classes, "", className)); c != nil {
		policy, _, _ := unstructured.NestedString(c.Object, "spec", "agent", "deletionPolicy")
		next := map[string]string{"": "Orphan", "Delete": "Orphan", "Orphan": "Delete"}[policy]
		out = append(out, option{"administrator sets the deletion policy " + next, rare, func() {
			w.patch(w.hub.Server, "administrator", path(classes, "v1alpha1", "", className), map[string]any{
				"spec": map[string]any{"agent": map[string]any{"deletionPolicy": next}},
			})
		}})
		mode, _, _ := unstructured.NestedString(c.Object, "spec", "agent", "mode")
		other := map[string]fleetv1alpha1.AgentMode{"ReadWrite": "Disabled", "Disabled": "ReadWrite"}[mode]
		out = append(out, option{"administrator sets the mode " + string(other), rare, func() { w.setMode(other) }})
	}
	if x := w.hub.Get(key(xrds, "", xrdName)); x != nil {
		next := map[string]string{"": "false", "true": "false", "false": "true"}[x.GetLabels()[fleetv1alpha1.PublishLabel]]
		if next == "true" || w.other.holder == nil { // What one hub withdraws, another may offer.
			out = append(out, option{"administrator sets the label publish=" + next, rare, func() { w.setPublished(next) }})
		}
	}
	return out
}

// setMode sets what the agent does in the clusters of the class.
func (w *world) setMode(mode fleetv1alpha1.AgentMode) {
	w.patch(w.hub.Server, "administrator", path(classes, "v1alpha1", "", className), map[string]any{
		"spec": map[string]any{"agent": map[string]any{"mode": string(mode)}},
	})
}

// setPublished sets whether the claim kind is offered to the clusters.
func (w *world) setPublished(value string) {
	w.patch(w.hub.Server, "administrator", path(xrds, crossplane.XRDKind.Version, "", xrdName), map[string]any{
		"metadata": map[string]any{"labels": map[string]any{fleetv1alpha1.PublishLabel: value}},
	})
}

// crossplane returns what Crossplane can do with a claim in the hub.
func (w *world) crossplane(obj *unstructured.Unstructured) []option {
	name := obj.GetNamespace() + "/" + obj.GetName()
	p := path(claims, "v1alpha1", obj.GetNamespace(), obj.GetName())
	var out []option
	if obj.GetDeletionTimestamp() != nil {
		if slices.Contains(obj.GetFinalizers(), crossplaneFinalizer) {
			out = append(out, option{"Crossplane releases " + name, usual, func() { w.setFinalizers(p, nil) }})
		}
		return out
	}
	if !slices.Contains(obj.GetFinalizers(), crossplaneFinalizer) {
		return append(out, option{"Crossplane takes " + name, usual, func() { w.setFinalizers(p, []any{crossplaneFinalizer}) }})
	}
	if named, _, _ := unstructured.NestedString(obj.Object, "spec", "resourceRef", "name"); named == "" {
		return append(out, option{"Crossplane binds " + name, usual, func() {
			w.patch(w.hub.Server, "crossplane", p, map[string]any{"spec": map[string]any{
				"resourceRef": map[string]any{"apiVersion": claimGroup + "/v1alpha1", "kind": "X" + claimKind, "name": claimName}, "size": "small",
			}})
		}})
	}
	version, _, _ := unstructured.NestedString(obj.Object, "spec", "version")
	if address, _, _ := unstructured.NestedString(obj.Object, "status", "address"); address != "address of "+version {
		out = append(out, option{"Crossplane reports " + name, usual, func() {
			w.patch(w.hub.Server, "crossplane", p+"/status", map[string]any{"status": map[string]any{
				"address": "address of " + version,
				"conditions": []any{
					map[string]any{"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "lastTransitionTime": "2026-01-02T03:04:05Z"},
					map[string]any{"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2026-01-02T03:04:05Z"},
				},
			}})
		}})
	}
	if w.hub.Get(key(secrets, obj.GetNamespace(), secretName)) == nil {
		out = append(out, option{"Crossplane publishes the Secret of " + name, usual, func() { w.publish(obj) }})
	}
	return out
}

// rotate returns the changes of passwords by Crossplane.
func (w *world) rotate() []option {
	var out []option
	for _, s := range w.hub.List(secrets) {
		password, _, _ := unstructured.NestedString(s.Object, "data", "password")
		decoded, _ := base64.StdEncoding.DecodeString(password)
		out = append(out, option{"Crossplane rotates the Secret in " + s.GetNamespace(), rare, func() {
			w.patch(w.hub.Server, "crossplane", path(secrets, "v1", s.GetNamespace(), s.GetName()), map[string]any{
				"data": map[string]any{"password": base64.StdEncoding.EncodeToString(append(decoded, "/rotated"...))},
			})
		}})
	}
	return out
}

func (w *world) setFinalizers(path string, finalizers any) {
	w.patch(w.hub.Server, "crossplane", path, map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
}

// publish writes a connection Secret whose password names its owner.
func (w *world) publish(obj *unstructured.Unstructured) {
	s := object("v1", "Secret", obj.GetNamespace(), secretName, nil)
	s.Object["type"] = string(crossplane.SecretTypeConnection)
	s.Object["data"] = map[string]any{"password": base64.StdEncoding.EncodeToString([]byte(newPassword(obj)))}
	_ = unstructured.SetNestedSlice(s.Object, []any{map[string]any{
		"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(), "name": obj.GetName(), "uid": string(obj.GetUID()), "controller": true,
	}}, "metadata", "ownerReferences")
	w.request(w.hub.Server, "crossplane", http.MethodPost, path(secrets, "v1", obj.GetNamespace(), ""), "application/json", s.Object)
}

// newPassword returns the password of an object of the hub: its UID, and that of the claim that it was made for.
func newPassword(obj *unstructured.Unstructured) string {
	return fmt.Sprintf("%s/%s", obj.GetUID(), obj.GetAnnotations()[fleetv1alpha1.SourceClaimUIDAnnotation])
}

// strays returns what can be in the way in the target namespaces: what others made there, and objects by which a
// tenant of the hub names another's claim as their source, before or after it is pushed.
func (w *world) strays() []option {
	var out []option
	for _, name := range []string{targetName, movedName} {
		if have := w.hub.Get(key(claims, name, claimName)); have != nil {
			for _, c := range w.clusters {
				source := map[string]any{
					fleetv1alpha1.SourceUIDAnnotation: c.identifier, fleetv1alpha1.SourceNamespaceAnnotation: c.teams[0],
				}
				if formatSource(have) == c.identifier+"/"+c.teams[0] {
					continue
				}
				if !isNamed(have) {
					out = append(out, option{fmt.Sprintf("administrator lets %s adopt %s/%s", c.identifier, name, claimName), rare, func() {
						w.patch(w.hub.Server, "administrator", path(claims, "v1alpha1", name, claimName), map[string]any{"metadata": map[string]any{
							"annotations": map[string]any{fleetv1alpha1.AdoptableByAnnotation: c.identifier + "/*"},
						}})
					}})
				}
				out = append(out, option{fmt.Sprintf("stray names %s/%s as the source in %s", c.identifier, c.teams[0], name), rare, func() {
					w.patch(w.hub.Server, "stray", path(claims, "v1alpha1", name, claimName), map[string]any{"metadata": map[string]any{"annotations": source}})
				}})
			}
			continue
		}
		out = append(out, option{"administrator makes " + name + "/" + claimName, rare, func() {
			obj := object(claimGroup+"/v1alpha1", claimKind, name, claimName, nil)
			w.request(w.hub.Server, "administrator", http.MethodPost, path(claims, "v1alpha1", name, ""), "application/json", obj.Object)
		}})
		for _, c := range w.clusters {
			obj := object(claimGroup+"/v1alpha1", claimKind, name, claimName, map[string]any{"version": "stray"})
			obj.SetAnnotations(map[string]string{
				fleetv1alpha1.SourceUIDAnnotation: c.identifier, fleetv1alpha1.SourceNamespaceAnnotation: c.teams[0],
			})
			out = append(out, option{fmt.Sprintf("stray for %s/%s in %s", c.identifier, c.teams[0], name), rare, func() {
				w.request(w.hub.Server, "stray", http.MethodPost, path(claims, "v1alpha1", name, ""), "application/json", obj.Object)
			}})
		}
	}
	return out
}

// background returns what the servers' own controllers can do.
func (w *world) background() []option {
	var out []option
	for _, s := range w.servers() {
		for _, step := range s.Pending() {
			out = append(out, option{w.serverName(s) + " " + step.Name, usual, func() { s.Run(step) }})
		}
	}
	return out
}

func (w *world) servers() []*apiserver.Server {
	out := []*apiserver.Server{w.hub.Server}
	for _, c := range w.clusters {
		out = append(out, c.server)
	}
	if w.other.holder != nil {
		out = append(out, w.other.Server)
	}
	return out
}

// moveClocks returns the changes of what properties depend on. Those of managers are for the next one.
func (w *world) moveClocks() []option {
	var out []option
	for _, d := range []time.Duration{time.Second, agent.DefaultInFlightGrace} {
		out = append(out, option{"requests last " + d.String(), rare, func() { w.clocks.inFlight = d }})
	}
	for _, d := range []time.Duration{agent.DefaultInFlightGrace, time.Minute} {
		out = append(out, option{"managers wait for requests for " + d.String(), rare, func() { w.clocks.grace = d }})
	}
	for _, d := range []time.Duration{5 * time.Second, 15 * time.Second, time.Minute} {
		out = append(out, option{"leases last " + d.String(), rare, func() { w.clocks.lease = d }})
	}
	for _, d := range []time.Duration{-maxSkew, maxSkew} {
		out = append(out, option{"clock of the hub " + d.String(), rare, func() { w.clocks.skew = d }})
	}
	return out
}

// maxSkew is how much the hub's clock may be ahead or behind.
const maxSkew = 4 * time.Second

// refusals returns the refusals of Masthead's next write by the admission of each server.
func (w *world) refusals() []option {
	var out []option
	for _, s := range w.servers() {
		if s.Admit != nil {
			continue
		}
		out = append(out, option{"refuse a write in " + w.serverName(s), rare, func() {
			s.Admit = func(change apiserver.Change) error {
				if !isAgent(change) {
					return nil
				}
				s.Admit = nil
				return apierrors.NewForbidden(change.Key.GroupResource, change.Key.Name, errors.New("a policy denied it"))
			}
		}})
	}
	return out
}

// restore returns the losses of claims with a workload cluster, as the one that replaces it does not have them yet, and
// their return from a backup.
func (w *world) restore() []option {
	var out []option
	for _, c := range w.clusters {
		for _, claim := range c.lost {
			name := claim.GetNamespace() + "/" + claim.GetName()
			if c.server.Get(key(claims, claim.GetNamespace(), claim.GetName())) != nil || !slices.Contains(c.server.Resources(), claims) ||
				c.server.Get(key(namespaces, "", claim.GetNamespace())) == nil {
				continue
			}
			out = append(out, option{"restore " + name + " in " + c.identifier, occasional, func() { w.bringBack(c, claim) }})
		}
		if len(c.server.List(claims)) == 0 {
			continue
		}
		out = append(out, option{"restore " + c.identifier + " without its claims", rare, func() {
			c.lost = c.server.List(claims)
			for _, claim := range c.lost {
				w.checker.claims[claim.GetUID()].lost = true
			}
			w.checker.expires(c.server)
			c.server.Lose(claims)
		}})
	}
	return out
}

// bringBack creates a claim as tools for backups do: with its annotations and finalizers, and without UID and status.
func (w *world) bringBack(c *workload, claim *unstructured.Unstructured) {
	obj := claim.DeepCopy()
	delete(obj.Object, "status")
	obj.SetUID("")
	obj.SetResourceVersion("")
	obj.SetManagedFields(nil)
	obj.SetDeletionTimestamp(nil)
	obj.SetOwnerReferences(nil)
	p := path(claims, "v1alpha1", claim.GetNamespace(), "")
	if _, code := w.request(c.server, "user", http.MethodPost, p, "application/json", obj.Object); code == http.StatusCreated {
		w.checker.claims[c.server.Get(key(claims, claim.GetNamespace(), claim.GetName())).GetUID()].restored = true
	}
}
