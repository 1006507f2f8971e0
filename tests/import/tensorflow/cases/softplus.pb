
;
x0Placeholder*
dtype0*
shape:
!
SoftplusSoftplusx0*
T0
'
IdentityIdentitySoftplus*
T0