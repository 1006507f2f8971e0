
;
x0Placeholder*
dtype0*
shape:

AcosAcosx0*
T0
#
IdentityIdentityAcos*
T0