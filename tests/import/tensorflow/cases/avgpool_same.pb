
;
x0Placeholder*
dtype0*
shape:	
s
	AvgPool2DAvgPoolx0*
paddingSAME*
ksize
*
data_formatNHWC*
T0*
strides

(
IdentityIdentity	AvgPool2D*
T0