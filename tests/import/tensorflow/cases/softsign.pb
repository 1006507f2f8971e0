
;
x0Placeholder*
dtype0*
shape:
!
SoftsignSoftsignx0*
T0
'
IdentityIdentitySoftsign*
T0