# Untested: there was no Nix store where this was written; its syntax is checked by `make packages`.
#
# The Swift of nixpkgs is older than 6.2, so this takes the program out of the tar.gz of a release:
#
#   pkgs.callPackage ./keyhaul.nix { src = ./keyhaul-0.2.0-linux-x86_64.tar.gz; }
{ lib, stdenv, autoPatchelfHook, src }:

stdenv.mkDerivation {
  pname = "keyhaul";
  version = "0.2.0";
  inherit src;

  nativeBuildInputs = [ autoPatchelfHook ];
  dontConfigure = true;
  dontBuild = true;

  installPhase = ''
    runHook preInstall
    mkdir -p $out
    cp -R . $out/
    runHook postInstall
  '';

  doInstallCheck = true;
  installCheckPhase = ''
    $out/bin/keyhaul --version
  '';

  meta = {
    description = "Inspect, verify, plan and restore iOS keychains from backups";
    license = lib.licenses.asl20;
    platforms = [ "x86_64-linux" ];
    mainProgram = "keyhaul";
    sourceProvenance = [ lib.sourceTypes.binaryNativeCode ];
  };
}
