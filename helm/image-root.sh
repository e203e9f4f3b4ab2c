#!/bin/sh
# Puts a program and all it needs to run into a folder: the libraries it is linked with, and the root certificates of this machine.
# Usage: image-root.sh PROGRAM FOLDER
set -eu
program=$1
root=$2
mkdir -p "$root/usr/bin" "$root/etc/ssl/certs" "$root/etc/partition-autoscaler"
cp "$program" "$root/usr/bin/"
ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
