#!/usr/bin/env bash
# Copies what the charts install from config/ into them: config/ is the source, and nothing in charts/*/manifests is
# written by hand.
set -euo pipefail
cd "$(dirname "$0")/.."

# fill FOLDER FILE... replaces the content of the folder with the files.
fill() {
  rm -rf "charts/$1"
  mkdir -p "charts/$1"
  cp "${@:2}" "charts/$1/"
}
# manifests FOLDER prints the manifests of a folder of config/, without what is for kustomize and without the Namespace,
# which Helm creates.
manifests() {
  find "config/$1" -maxdepth 1 -name '*.yaml' ! -name kustomization.yaml ! -name namespace.yaml | LC_ALL=C sort
}

fill masthead-crds/manifests/bases $(manifests crd/bases)
fill masthead-crds/manifests/clusterprofiles $(manifests clusterprofiles)
for folder in rbac policies imports/{base,eks,aks,gke} prometheus; do
  fill "masthead/manifests/$folder" $(manifests "$folder")
done
if compgen -G 'config/grafana/*.json' >/dev/null; then
  fill masthead/manifests/grafana config/grafana/*.json
fi
fill masthead-workload/manifests config/workload/role-components.yaml \
  config/samples/workload/{health-checks-rights,components-policy}.yaml
fill masthead-workload/manifests/rights $(manifests workload | grep -v role-components)
go run ./hack/chartvalues charts/masthead-crds charts/masthead charts/masthead-workload >docs/chart-values.md.new
mv docs/chart-values.md.new docs/chart-values.md
